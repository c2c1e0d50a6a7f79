// The secret that the agents and the coordinator of a job share, and what is derived from it: the password of the
// coordinator's server, and the server's certificate.
//
// Both sides derive the same certificate (Ed25519: signatures are deterministic), so an agent that has the secret can
// verify the server without a certificate authority, and nothing but the secret has to be distributed.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace tidemark {

struct JobKey {
  std::string secret;  ///< 64 hexadecimal digits, or what the user chose

  /// Of the clients of the coordinator's server.
  [[nodiscard]] std::string password() const;
};

/// PEM.
struct ServerCertificate {
  std::string certificate;
  std::string private_key;
};
/// The name that the certificate is made out to.
inline constexpr const char* kServerName = "tidemark";

/// The certificate of the server of a job with this key. It does not expire: the clocks of a cluster may be wrong.
[[nodiscard]] Result<ServerCertificate> server_certificate(const JobKey& key);

/// The key in this file, which only its owner can read; makes the file, and the folder, where there is none.
[[nodiscard]] Result<JobKey> open_job_key(const std::string& path);

/// A number that is not 0, from the kernel's random numbers.
[[nodiscard]] std::uint64_t random_number();

}  // namespace tidemark
