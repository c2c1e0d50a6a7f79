// Memory of a device for batches, used again for later ones: a buffer goes back with the stream that used it last, and
// who takes it next waits on the device, not on the host.
#pragma once

#include <cstddef>
#include <mutex>
#include <vector>

#include "base/result.h"
#include "inprocess/cuda/cuda_driver.h"

namespace tidemark {

struct DeviceBuffer {
  cuda::DevicePointer address = 0;
  std::size_t bytes = 0;
  cuda::Event used = nullptr;   ///< recorded where the last user is done
  cuda::Event ready = nullptr;  ///< for the next one: recorded where it has been filled
};

/// Any thread. `context` is the device's, and outlives it.
class DeviceBuffers {
 public:
  DeviceBuffers(const cuda::Driver& driver, cuda::Context context) : driver_(driver), context_(context) {}
  /// Frees the buffers that were given back. The others belong to their users.
  ~DeviceBuffers();
  DeviceBuffers(const DeviceBuffers&) = delete;
  DeviceBuffers& operator=(const DeviceBuffers&) = delete;

  /// A buffer of at least `bytes`. `stream` waits for whoever had it before.
  [[nodiscard]] Result<DeviceBuffer> take(std::size_t bytes, cuda::Stream stream);
  /// `stream`: what was put on it uses the buffer.
  void give_back(const DeviceBuffer& buffer, cuda::Stream stream);

 private:
  [[nodiscard]] Result<DeviceBuffer> allocate(std::size_t bytes);
  void free(const DeviceBuffer& buffer) const;

  const cuda::Driver& driver_;
  cuda::Context context_;
  std::mutex mutex_;
  std::vector<DeviceBuffer> idle_;
};

}  // namespace tidemark
