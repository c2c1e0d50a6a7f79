// A library that takes memory from the driver like libnccl.so.2: with its own calls, most of it as mapped physical
// memory, whose handle is released at once.
#include "driver_library.h"
#include "libraries.h"

namespace {

constexpr std::size_t kMapped = 4 << 20;

struct Communicator {
  fakes::DevicePointer mapped = 0;
  fakes::DevicePointer block = 0;
};

}  // namespace

void* fakes_nccl_open() {
  auto* const communicator = new Communicator;
  fakes::AllocationProperties properties{};
  properties.type = 1;
  properties.location.type = tidemark::process::cuda::kLocationDevice;
  DRIVER(cuCtxGetDevice)(&properties.location.id);
  fakes::AllocationHandle handle = 0;
  DRIVER(cuMemAddressReserve)(&communicator->mapped, kMapped, 0, 0, 0);
  DRIVER(cuMemCreate)(&handle, kMapped, &properties, 0);
  DRIVER(cuMemMap)(communicator->mapped, kMapped, 0, handle, 0);
  DRIVER(cuMemRelease)(handle);
  DRIVER(cuMemAlloc_v2)(&communicator->block, 1 << 20);
  return communicator;
}

void fakes_nccl_close(void* opened) {
  auto* const communicator = static_cast<Communicator*>(opened);
  DRIVER(cuMemUnmap)(communicator->mapped, kMapped);
  DRIVER(cuMemAddressFree)(communicator->mapped, kMapped);
  DRIVER(cuMemFree_v2)(communicator->block);
  delete communicator;
}
