// These tests check where the secret of a world comes from.

#include "executor/bootstrap/secret.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "chorale/error.hpp"
#include "tests/has.hpp"

namespace chorale::test {
namespace {

using bootstrap::Secret;

/// Makes a temporary file with one secret in it.
struct File {
  const std::string path;

  explicit File(const std::string& text, mode_t mode = 0600)
      : path(testing::TempDir() + "chorale-secret-" + std::to_string(getpid())) {
    std::ofstream(path) << text;
    chmod(path.c_str(), mode);
  }
  ~File() { unlink(path.c_str()); }
};

std::string refusal(const std::string& setting) {
  try {
    Secret::read(setting);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "none";
}

TEST(Secret, IsTheTextOrThatOfAFile) {
  const File file("a secret in a file\n");
  EXPECT_EQ(Secret::read("file:" + file.path).key(), Secret::read("a secret in a file").key());
  EXPECT_NE(Secret::read("a secret in a file").key(), Secret::read("a secret in a file ").key());
  EXPECT_TRUE(Secret::read("x").given());
  for (const char* none : {"", "none"}) {
    EXPECT_FALSE(Secret::read(none).given());
    EXPECT_EQ(Secret::read(none).key(), Secret().key());
  }
}

TEST(Secret, AFileThatOthersCanOpenIsRefused) {
  for (const mode_t mode : {0604, 0640, 0602, 0644, 0660}) {
    const File file("hunter2", mode);
    const std::string said = refusal("file:" + file.path);
    EXPECT_TRUE(has(said, "chmod 600 " + file.path)) << said;
    EXPECT_FALSE(has(said, "hunter2")) << said;
  }
}

TEST(Secret, WhatCannotBeReadIsNamed) {
  EXPECT_TRUE(
      has(refusal("file:/no/such/file"), "the secret in '/no/such/file' cannot be read: No such file"));
  EXPECT_TRUE(has(refusal("file:relative"), "write file:/path"));
  EXPECT_TRUE(has(refusal("file:/tmp"), "it is not a plain file"));
  const File empty("\n");
  EXPECT_TRUE(has(refusal("file:" + empty.path), "is empty: (umask 077; openssl rand -hex 32 > "));
  EXPECT_TRUE(
      has(refusal(std::string(5000, 'x')), "the secret has 5000 bytes, but at most 4096 are allowed"));
  const File longer(std::string(5000, 'x'));
  EXPECT_TRUE(has(refusal("file:" + longer.path), "is longer than 4096 bytes"));
}

TEST(Secret, IsNotShown) {
  EXPECT_EQ(bootstrap::secret_setting_text("hunter2"), "set");
  EXPECT_EQ(bootstrap::secret_setting_text("file:/etc/secret"), "set, by file:/etc/secret");
  EXPECT_EQ(bootstrap::secret_setting_text("none"), "none");
  EXPECT_FALSE(has(refusal(std::string(5000, 'x')), "xx"));
}

}  // namespace
}  // namespace chorale::test
