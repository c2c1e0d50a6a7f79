#include "cluster/job_key.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string_view>

#include "base/scoped_fd.h"
#include "http/endpoint.h"

namespace tidemark {
namespace {

constexpr std::size_t kSecretBytes = 32;
using Digest = std::array<unsigned char, kSecretBytes>;

struct OpenSslDeleter {
  void operator()(EVP_PKEY* key) const { ::EVP_PKEY_free(key); }
  void operator()(X509* certificate) const { ::X509_free(certificate); }
  void operator()(X509_EXTENSION* extension) const { ::X509_EXTENSION_free(extension); }
  void operator()(BIO* bytes) const { ::BIO_free_all(bytes); }
};
template <typename Object>
using Owned = std::unique_ptr<Object, OpenSslDeleter>;

// Different labels give independent secrets.
Digest derive(const std::string& secret, std::string_view label) {
  Digest digest{};
  unsigned length = 0;
  ::HMAC(::EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
         reinterpret_cast<const unsigned char*>(label.data()), label.size(), digest.data(), &length);
  return digest;
}

std::string hex(const unsigned char* bytes, std::size_t count) {
  std::string text;
  for (std::size_t n = 0; n < count; ++n) text += fmt::format("{:02x}", bytes[n]);
  return text;
}

bool fill_with_random_bytes(void* bytes, std::size_t count) {
  return ::getrandom(bytes, count, 0) == static_cast<ssize_t>(count);
}

std::string text_of(BIO* bytes) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bytes, &data);
  return {data, static_cast<std::size_t>(size)};
}

bool add_extension(X509* certificate, int kind, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  ::X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  const Owned<X509_EXTENSION> extension(::X509V3_EXT_conf_nid(nullptr, &context, kind, value));
  return extension && ::X509_add_ext(certificate, extension.get(), -1) == 1;
}

// Every value is constant, or derived from the key: two calls give the same bytes.
bool fill_in(X509* certificate, EVP_PKEY* key, const std::string& name) {
  X509_NAME* subject = ::X509_get_subject_name(certificate);
  return ::X509_set_version(certificate, X509_VERSION_3) == 1 &&
         ::ASN1_INTEGER_set(::X509_get_serialNumber(certificate), 1) == 1 &&
         ::ASN1_TIME_set_string_X509(::X509_getm_notBefore(certificate), "20200101000000Z") == 1 &&
         ::ASN1_TIME_set_string_X509(::X509_getm_notAfter(certificate), "99991231235959Z") == 1 &&
         ::X509_set_pubkey(certificate, key) == 1 &&
         ::X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>(name.c_str()),
                                      -1, -1, 0) == 1 &&
         ::X509_set_issuer_name(certificate, subject) == 1 &&
         add_extension(certificate, NID_subject_alt_name, ("DNS:" + name).c_str()) &&
         add_extension(certificate, NID_basic_constraints, "critical,CA:TRUE") &&
         ::X509_sign(certificate, key, nullptr) != 0;
}

Result<std::string> make_key_file(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code error;
  if (!folder.empty() && !std::filesystem::exists(folder, error)) {
    std::filesystem::create_directories(folder, error);
    if (error || ::chmod(folder.c_str(), S_IRWXU) != 0) {
      return Error{fmt::format("{}: cannot be created: {}", folder.string(), std::strerror(errno))};
    }
  }
  Digest random{};
  if (!fill_with_random_bytes(random.data(), random.size())) return Error{"the kernel gives no random numbers"};
  const std::string secret = hex(random.data(), random.size());
  // Complete before it has its name: another coordinator of this job may be starting.
  const std::string temporary = fmt::format("{}.{}", path, ::getpid());
  {
    const ScopedFd file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR));
    const std::string line = secret + "\n";
    if (!file || ::write(file.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
      return Error{fmt::format("{}: cannot be written: {}", temporary, std::strerror(errno))};
    }
  }
  const bool linked = ::link(temporary.c_str(), path.c_str()) == 0;
  const int reason = errno;
  ::unlink(temporary.c_str());
  if (!linked && reason != EEXIST) return Error{fmt::format("{}: cannot be created: {}", path, std::strerror(reason))};
  return linked ? Result<std::string>(secret) : read_token_file(path);
}

}  // namespace

std::string JobKey::password() const {
  const Digest digest = derive(secret, "tidemark job password 1");
  return hex(digest.data(), digest.size());
}

Result<ServerCertificate> server_certificate(const JobKey& key) {
  const Error failed{"OpenSSL could not make the server's certificate"};
  const Digest seed = derive(key.secret, "tidemark server key 1");
  const Owned<EVP_PKEY> pair(::EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, seed.data(), seed.size()));
  const Owned<X509> certificate(::X509_new());
  if (!pair || !certificate || !fill_in(certificate.get(), pair.get(), kServerName)) return failed;
  const Owned<BIO> public_part(::BIO_new(::BIO_s_mem()));
  const Owned<BIO> private_part(::BIO_new(::BIO_s_mem()));
  if (!public_part || !private_part || ::PEM_write_bio_X509(public_part.get(), certificate.get()) != 1 ||
      ::PEM_write_bio_PrivateKey(private_part.get(), pair.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return failed;
  }
  return ServerCertificate{text_of(public_part.get()), text_of(private_part.get())};
}

Result<JobKey> open_job_key(const std::string& path) {
  std::error_code error;
  auto secret = std::filesystem::exists(path, error) ? read_token_file(path) : make_key_file(path);
  if (!secret) return secret.error();
  return JobKey{std::move(secret).value()};
}

std::uint64_t random_number() {
  std::uint64_t number = 0;
  while (number == 0) {
    if (!fill_with_random_bytes(&number, sizeof(number))) return static_cast<std::uint64_t>(::getpid()) + 1;
  }
  return number;
}

}  // namespace tidemark
