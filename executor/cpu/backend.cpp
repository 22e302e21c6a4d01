#include "executor/binding/backend.hpp"

#include <fmt/format.h>

#include <cstring>
#include <new>
#include <vector>

#include "binding.hpp"
#include "chorale/config.hpp"
#include "executor/world/group.hpp"
#include "port.hpp"
#include "reduction.hpp"

namespace chorale {
namespace {

class CpuBackend final : public Backend {
 public:
  CpuBackend(World& world, const Config& config) : world_(world) {
    // Runs read the windows while other ranks allocate more, so they must not move. A local world has none.
    if (!world_.local()) windows_.reserve(1024);
    shared_.world = &world_;
    shared_.windows = &windows_;
    shared_.trace_launches = config.trace;
    shared_.proxy = [this]() -> cpu::Proxy& {
      if (!proxy_) proxy_ = std::make_unique<cpu::Proxy>(world_.scheduler(), &world_);
      return *proxy_;
    };
  }

  std::unique_ptr<Binding> bind(const Plan& plan, const std::vector<ScratchUse>& use, const Call& call,
                                const Arguments&) override {
    return std::make_unique<cpu::CpuBinding>(shared_, plan, use, call);
  }

  uint64_t scratch_of(const Plan& plan, const std::vector<ScratchUse>& use, const Call& call) override {
    return cpu::CpuBinding::scratch_of(plan, use, call);
  }

  bool has_whole_lines() const override { return !world_.group().several_hosts(); }

  void* allocate(uint64_t bytes) override {
    if (!world_.local()) {
      if (windows_.size() == windows_.capacity()) {
        throw RunError(RunError::Reason::resources,
                       fmt::format("{} windows are in use: use fewer, larger allocations", windows_.size()));
      }
      windows_.push_back(Window::create(world_, bytes));
      return windows_.back().local();
    }
    constexpr std::align_val_t alignment{4096};
    // The largest sizes would overflow to small ones when rounded up to the alignment.
    char* const memory = bytes > PTRDIFF_MAX
                             ? nullptr
                             : static_cast<char*>(::operator new(bytes ? bytes : 1, alignment, std::nothrow));
    if (!memory) throw RunError(RunError::Reason::resources, fmt::format("cannot allocate {} bytes", bytes));
    std::memset(memory, 0, bytes);
    blocks_.emplace_back(memory, [](char* of) { ::operator delete (of, std::align_val_t{4096}); });
    return memory;
  }

  void copy_rows(Rows to, Rows from, uint64_t bytes, uint64_t rows, void*) override {
    for (uint64_t row = 0; row < rows; ++row)
      std::memmove(to.at + row * to.distance, from.at + row * from.distance, bytes);
  }

  void scale(void* out, const void* in, uint64_t elements, DType dtype, const Factor& factor,
             void*) override {
    cpu::scale(out, in, elements, dtype, factor);
  }

  void check() override { world_.check(); }
  void synchronize(void*) override { check(); }

 private:
  World& world_;
  std::vector<Window> windows_;
  std::vector<std::unique_ptr<char, void (*)(char*)>> blocks_;  ///< blocks from allocate(), in a local world
  std::unique_ptr<cpu::Proxy> proxy_;
  cpu::Shared shared_;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(World& world, const Config& config) {
  return std::make_unique<CpuBackend>(world, config);
}

}  // namespace chorale
