#include "tools/device.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

namespace chorale::tools {
namespace {

constexpr uint64_t piece_bytes = uint64_t(4) << 20;

class Host : public Device {
 public:
  explicit Host(int ranks) : threads_(piece_threads(ranks)) {}

  std::byte* allocate(uint64_t bytes) override {
    // The system gives zeroed memory page by page, when it is touched.
    void* const memory = std::calloc(bytes ? bytes : 1, 1);
    if (!memory) throw std::bad_alloc();
    owned_.emplace_back(memory, &std::free);
    return static_cast<std::byte*>(memory);
  }
  void set(std::byte* to, int value, uint64_t bytes) override { std::memset(to, value, bytes); }
  void fill(std::byte* to, uint64_t bytes, const Make& make) override {
    in_pieces(bytes, piece_bytes, threads_,
              [&](unsigned, uint64_t first, uint64_t size) { make(to + first, first, size); });
  }
  void look(const std::byte* from, uint64_t bytes, const Look& look) override {
    in_pieces(bytes, piece_bytes, threads_,
              [&](unsigned, uint64_t first, uint64_t size) { look(from + first, first, size); });
  }
  void* stream() override { return nullptr; }
  void copy(std::byte* to, const std::byte* from, uint64_t bytes) override {
    if (bytes) std::memcpy(to, from, bytes);
  }
  void finish(World&) override {}
  double time_us(const std::function<void()>& enqueue, const std::function<void()>& wait) override {
    const auto start = std::chrono::steady_clock::now();
    enqueue();
    wait();
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
  }
  std::unique_ptr<Graph> capture(const std::function<void()>&) override { return nullptr; }

 private:
  unsigned threads_;
  std::vector<std::unique_ptr<void, void (*)(void*)>> owned_;
};

}  // namespace

unsigned piece_threads(int ranks) {
  return std::clamp(std::thread::hardware_concurrency() / unsigned(std::max(ranks, 1)), 1u, 8u);
}

void in_pieces(uint64_t bytes, uint64_t piece, unsigned threads,
               const std::function<void(unsigned, uint64_t, uint64_t)>& work) {
  const uint64_t pieces = (bytes + piece - 1) / piece;
  threads = unsigned(std::min<uint64_t>(threads, pieces));
  std::atomic<uint64_t> next = 0;
  std::exception_ptr failure;
  std::mutex mutex;
  const auto take = [&](unsigned thread) {
    try {
      for (uint64_t at; (at = next.fetch_add(1)) < pieces;) {
        work(thread, at * piece, std::min(piece, bytes - at * piece));
      }
    } catch (...) {
      const std::lock_guard hold(mutex);
      failure = std::current_exception();
    }
  };
  std::vector<std::thread> others;
  for (unsigned thread = 1; thread < threads; ++thread) others.emplace_back(take, thread);
  take(0);
  for (std::thread& other : others) other.join();
  if (failure) std::rethrow_exception(failure);
}

std::unique_ptr<Device> make_device(const std::string& backend, const World& world) {
  if (backend == "cuda") return make_cuda_device(world);
  return std::make_unique<Host>(world.ranks());
}

}  // namespace chorale::tools
