#include "cluster/job_key.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/output_file.h"

namespace tidemark {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(JobKey, IsMadeOnceForItsOwnerOnly) {
  const auto scratch = ScratchFolder::create("job-key");
  ASSERT_TRUE(scratch);
  const std::string path = scratch->path() + "/state/key";
  const auto key = open_job_key(path);
  ASSERT_TRUE(key) << key.error().message;
  EXPECT_EQ(key->secret.size(), 64U);
  struct stat facts {};
  ASSERT_EQ(::stat(path.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777U, 0600U);
  ASSERT_EQ(::stat((scratch->path() + "/state").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777U, 0700U);
  const auto again = open_job_key(path);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->secret, key->secret);
  std::filesystem::permissions(path, std::filesystem::perms::group_read, std::filesystem::perm_options::add);
  const auto refused = open_job_key(path);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("others may read"));
}

TEST(JobKey, BothSidesDeriveOneCertificate) {
  const JobKey key{"0123456789abcdef0123456789abcdef"};
  const auto one = server_certificate(key);
  const auto two = server_certificate(key);
  ASSERT_TRUE(one && two);
  EXPECT_EQ(one->certificate, two->certificate);
  EXPECT_EQ(one->private_key, two->private_key);
  EXPECT_THAT(one->certificate, StartsWith("-----BEGIN CERTIFICATE-----\n"));
  EXPECT_THAT(one->private_key, StartsWith("-----BEGIN PRIVATE KEY-----\n"));
  const auto other = server_certificate({"0123456789abcdef0123456789abcdeg"});
  ASSERT_TRUE(other);
  EXPECT_NE(other->certificate, one->certificate);
  EXPECT_EQ(key.password().size(), 64U);
  EXPECT_NE(key.password(), key.secret);
  // HMAC-SHA256 by Python's hmac module.
  EXPECT_EQ(key.password(), "9290b074448646f20dd67bb7532f5f10f5b9be17257149aece19030332b1c3b1");
}

TEST(JobKey, RandomNumbersDiffer) {
  EXPECT_NE(random_number(), random_number());
}

}  // namespace
}  // namespace tidemark
