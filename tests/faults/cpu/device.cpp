#include "tests/faults/device.hpp"

#include <cstring>

namespace chorale::test {
namespace {

/// Implements the CPU as a device. execute() returns when the run has ended, so every stream is idle.
class Cpu final : public Device {
 public:
  std::string name() const override { return "cpu"; }
  std::string why_not() const override { return ""; }
  int ranks() const override { return 4; }
  std::chrono::nanoseconds join_deadline(std::chrono::nanoseconds deadline) const override {
    return deadline;
  }
  int many() const override { return 1000; }
  void use(int) override {}
  std::shared_ptr<void> make_stream() override { return nullptr; }
  void wait(void*) override {}
  std::shared_ptr<void> allocate(uint64_t bytes) override {
    return std::shared_ptr<char[]>(new char[bytes]());
  }
  void copy(void* to, const void* from, uint64_t bytes, void*) override { std::memcpy(to, from, bytes); }
  uint64_t free_bytes() override { return 0; }
};

}  // namespace

Device& device() {
  static Cpu cpu;
  return cpu;
}

}  // namespace chorale::test
