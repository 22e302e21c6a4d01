#include "board.hpp"

#include <signal.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <utility>

#include "group.hpp"
#include "process.hpp"

namespace chorale::world {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds pause{5};
constexpr std::chrono::seconds linger{1};  // the wait for ranks that have not come yet
/// A rank waits this long for the ranks of the last join to leave their board.
constexpr std::chrono::seconds board_patience{3};

/// Hashes a job's name by FNV-1a. The hash is never 0.
uint64_t number_of(const std::string& job) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char letter : job) hash = (hash ^ uint8_t(letter)) * 0x100000001b3;
  return hash | 1;
}

key_t key_of(uint64_t job) {
  const auto key = key_t(job ^ job >> 32);
  return key == IPC_PRIVATE ? key_t(1) : key;
}

/// Returns what is_alive() returns, but also works for a process without a known start. A process that can
/// open no file does not know its start.
bool lives(const Process& process) {
  if (process.start == 0) return ::kill(process.pid, 0) == 0 || errno == EPERM;
  return is_alive(process);
}

}  // namespace

/// Holds one rank's part of the board. It starts as zeros.
struct Board::Slot {
  enum State : uint32_t { absent, claimed, here, left };
  std::atomic<uint32_t> state;
  Process process;  ///< valid when the state is `here`
};

struct Board::Page {
  std::atomic<uint64_t> job;  ///< written by the first rank that comes
  Refusal refusal;

  Slot* slots() { return reinterpret_cast<Slot*>(this + 1); }
};

Board::Board(const std::string& job, int rank, std::vector<int> near, const Process& self, bool used_once)
    : rank_(rank), near_(std::move(near)), used_once_(used_once) {
  const uint64_t number = number_of(job + std::to_string(Control::version));
  const auto highest = size_t(*std::max_element(near_.begin(), near_.end()));
  const size_t bytes = sizeof(Page) + (highest + 1) * sizeof(Slot);
  for (const auto until = Clock::now() + board_patience; Clock::now() < until;
       std::this_thread::sleep_for(pause)) {
    const Found found = attach(bytes, number, self);
    if (found == Found::entered) return;
    detach();
    if (found == Found::not_ours) return;
  }
}

Board::~Board() {
  if (page_) page_->slots()[rank_].state.store(Slot::left, std::memory_order_release);
  detach();
}

Board::Found Board::attach(size_t bytes, uint64_t job, const Process& self) {
  const key_t key = key_of(job);
  id_ = ::shmget(key, 0, 0);
  if (id_ < 0 && errno == ENOENT) id_ = ::shmget(key, bytes, IPC_CREAT | IPC_EXCL | 0600);
  if (id_ < 0) return errno == EEXIST ? Found::ended : Found::not_ours;
  void* const memory = ::shmat(id_, nullptr, 0);
  if (memory == reinterpret_cast<void*>(-1))
    return errno == EINVAL || errno == EIDRM ? Found::ended : Found::not_ours;
  page_ = static_cast<Page*>(memory);
  shmid_ds status{};
  if (::shmctl(id_, IPC_STAT, &status) != 0) return Found::ended;
  if (status.shm_perm.mode & SHM_DEST) return Found::ended;
  if (status.shm_perm.cuid != ::geteuid()) return Found::not_ours;  // root can open memory of other users
  if (status.shm_segsz < sizeof(Page) + (size_t(rank_) + 1) * sizeof(Slot)) return Found::not_ours;
  slots_ = (status.shm_segsz - sizeof(Page)) / sizeof(Slot);
  return enter(job, self, status.shm_nattch == 1);
}

/// Takes this rank's slot. If all ranks on the board have ended, the board is of an earlier job, so this
/// removes it first.
Board::Found Board::enter(uint64_t job, const Process& self, bool alone) {
  uint64_t nobody = 0;
  if (!page_->job.compare_exchange_strong(nobody, job) && nobody != job) return Found::not_ours;
  if (!used_once_ && abandoned(alone)) {
    remove();
    return Found::ended;
  }
  Slot& mine = page_->slots()[rank_];
  uint32_t absent = Slot::absent;
  if (!mine.state.compare_exchange_strong(absent, Slot::claimed)) {
    // Either two processes have this rank, or the last join has not quite ended.
    const bool taken = absent == Slot::claimed || (absent == Slot::here && lives(mine.process));
    return taken ? Found::not_ours : Found::ended;
  }
  mine.process = self;
  mine.state.store(Slot::here, std::memory_order_release);
  return Found::entered;
}

/// \param alone  no other process is attached, so a rank with a half-written slot was killed
bool Board::abandoned(bool alone) const {
  bool used = false;
  for (size_t at = 0; at < slots_; ++at) {
    const Slot& slot = page_->slots()[at];
    const uint32_t state = slot.state.load(std::memory_order_acquire);
    if ((state == Slot::claimed && !alone) || (state == Slot::here && lives(slot.process))) return false;
    used = used || state != Slot::absent;
  }
  return used;
}

const std::atomic<uint32_t>& Board::state(int rank) const { return page_->slots()[rank].state; }

void Board::check() const {
  if (page_ && page_->refusal.stands()) page_->refusal.throw_it();
}

std::optional<Board::Dead> Board::dead() {
  if (!page_ || Clock::now() < next_look_) return std::nullopt;
  next_look_ = Clock::now() + check_interval;
  for (const int peer : near_) {
    if (peer == rank_ || size_t(peer) >= slots_) continue;
    if (state(peer).load(std::memory_order_acquire) != Slot::here) continue;
    const Process process = page_->slots()[peer].process;
    // The rank may have ended its part, and then its process, since the first check.
    if (!lives(process) && state(peer).load(std::memory_order_acquire) == Slot::here)
      return Dead{peer, process.pid};
  }
  return std::nullopt;
}

void Board::fail(RunError::Reason reason, const std::string& text) {
  if (!page_ || !page_->refusal.write(reason, text)) return;
  if (reason != RunError::Reason::timed_out) {
    for (const auto until = Clock::now() + linger; !all_came() && Clock::now() < until;)
      std::this_thread::sleep_for(pause);
  }
  remove();
}

bool Board::all_came() const {
  return std::all_of(near_.begin(), near_.end(), [this](int rank) {
    return size_t(rank) >= slots_ || state(rank).load(std::memory_order_acquire) >= Slot::here;
  });
}

void Board::close() {
  if (page_) remove();
}

/// Removes the name at once. The memory is freed when the last process detaches.
void Board::remove() { ::shmctl(id_, IPC_RMID, nullptr); }

void Board::detach() {
  if (page_) ::shmdt(page_);
  page_ = nullptr;
}

}  // namespace chorale::world
