#include "control_relay.hpp"

#include <fmt/format.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "executor/system/thread.hpp"
#include "group.hpp"

namespace chorale::world {
namespace {

using Clock = std::chrono::steady_clock;

/// A host that reads nothing for this long counts as gone. Its reading thread does nothing else, so it never
/// takes that long.
constexpr std::chrono::seconds send_limit{20};
constexpr std::chrono::seconds farewell_patience{1};  // the wait for hosts that have not read everything when
                                                      // this rank leaves

void set(int socket, int level, int option, int value) {
  ::setsockopt(socket, level, option, &value, sizeof value);
}

/// Makes TCP report a host that silently disappears after about 15 s.
void watch_over(int socket) {
  set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPIDLE, 5);
  set(socket, IPPROTO_TCP, TCP_KEEPINTVL, 2);
  set(socket, IPPROTO_TCP, TCP_KEEPCNT, 5);
  set(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, 15000);
}

ControlRelay::Event refused_event(int rank, uint32_t reason, const std::string& text) {
  ControlRelay::Event event{};
  event.what = ControlRelay::What::refused;
  event.rank = uint32_t(rank);
  event.number = reason;
  event.bytes = uint32_t(text.size());
  return event;
}

/// Returns whether the other machine has received all that was sent to it, or is gone.
bool has_all(int socket) {
  pollfd ended{socket, 0, 0};
  int left = 0;
  return ::poll(&ended, 1, 0) > 0 || ::ioctl(socket, SIOCOUTQ, &left) != 0 || left == 0;
}

}  // namespace

void tell_hosts(const std::vector<system::Descriptor>& links, int rank, const system::Thrown& thrown) {
  std::string text = system::told_text(rank, thrown);
  text.resize(std::min(text.size(), Refusal::text_bytes - 1));
  const ControlRelay::Event event = refused_event(rank, uint32_t(thrown.reason), text);
  // The connection is almost unused, so it has room for the message.
  std::string said(reinterpret_cast<const char*>(&event), sizeof event);
  said += text;
  for (const system::Descriptor& link : links) {
    if (link) static_cast<void>(::send(link.get(), said.data(), said.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
  }
  const auto missing = [](const system::Descriptor& link) { return link && !has_all(link.get()); };
  for (const auto until = Clock::now() + farewell_patience;
       std::any_of(links.begin(), links.end(), missing) && Clock::now() < until;)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

ControlRelay::ControlRelay(Group& group, uint32_t host, std::vector<system::Descriptor> links)
    : group_(group), control_(*group.control_), host_(host), told_(size_t(group.ranks())) {
  for (int rank = 0; rank < group.ranks(); ++rank) {
    if (group.host(rank) == host) mine_.push_back(rank);
  }
  for (uint32_t other = 0; other < links.size(); ++other) {
    if (!links[other]) continue;
    watch_over(links[other].get());
    links_.emplace_back();
    links_.back().socket = std::move(links[other]);
    links_.back().host = other;
  }
  try {
    wake_ = system::Descriptor(::eventfd(0, EFD_CLOEXEC));
    if (!wake_) system::throw_errno("make an eventfd");
    teller_ = system::start_thread("what other hosts are told", [this] { tell_all(); });
    listener_ = system::start_thread("what other hosts say", [this] { listen_all(); });
  } catch (...) {
    quit_ = true;
    if (teller_.joinable()) teller_.join();
    std::vector<system::Descriptor> unused;
    for (Link& link : links_) unused.push_back(std::move(link.socket));
    tell_hosts(unused, mine_.front(), system::thrown_now());
    throw;
  }
}

ControlRelay::~ControlRelay() {
  quit_ = true;
  group_.ring();
  wake();
  teller_.join();
  listener_.join();
  const std::lock_guard lock(mutex_);
  tell_news();
  // The others may still send, but no thread reads it any more. To close a connection with unread data
  // discards data that is still on the way, so wait until the others have everything.
  const auto missing = [this](Link& link) { return !taken(link); };
  for (const auto until = Clock::now() + farewell_patience;
       std::count_if(links_.begin(), links_.end(), missing) != 0 && Clock::now() < until;)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// -- Telling

void ControlRelay::tell_all() {
  while (!quit_) {
    const uint32_t seen = control_.bell.load(std::memory_order_acquire);
    {
      const std::lock_guard lock(mutex_);
      do_heard();
      tell_news();
      for (Link& link : links_) flush(link);
    }
    group_.check_peers();
    // Device code stops the world without a change of the bell, so look at least this often.
    sleep_on(control_.bell, seen, check_interval);
  }
}

void ControlRelay::tell_news() {
  tell_refusal();
  // Read the stop before sending arrivals. Then they include all barriers of the rank that stopped the world.
  std::string why;
  const Event stop = news_of_stop(why);
  while (tell_arrivals()) {
  }
  if (stop.number != 0) tell(stop, why.data());
  while (tell_resets()) {
  }
  for (const int rank : mine_) tell_rest(rank);
}

void ControlRelay::tell_refusal() {
  const Refusal& refusal = control_.refusal;
  if (refusal_told_ || !refusal.stands()) return;
  refusal_told_ = true;
  const std::string text = refusal.text;
  tell(refused_event(mine_.front(), refusal.reason, text), text.data());
}

/// Sends the next arrivals, and returns whether there are any. A rank can take its next step only after
/// others have come that far, so it sends the arrivals of the ranks that are furthest behind. These are the
/// ranks of this host with the fewest resets sent and, among them, the fewest arrivals sent.
bool ControlRelay::tell_arrivals() {
  const uint64_t passed = control_.reset.passed.load(std::memory_order_acquire);
  uint64_t resets = ~uint64_t(0), least = ~uint64_t(0);
  for (const int rank : mine_) resets = std::min(resets, told_[size_t(rank)].resets);
  if (resets != passed) return false;  // after a reset arrivals count from 0 again
  for (const int rank : mine_) {
    const Told& told = told_[size_t(rank)];
    if (told.resets == resets) least = std::min(least, told.arrived);
  }
  bool any = false;
  for (const int rank : mine_) {
    Told& told = told_[size_t(rank)];
    if (told.resets != resets || told.arrived != least) continue;
    const uint64_t arrived = control_.seats()[rank].arrived.load();
    if (arrived <= least || control_.reset.passed.load(std::memory_order_acquire) != passed) continue;
    tell_arrival(rank, ++told.arrived, resets);
    any = true;
  }
  return any;
}

bool ControlRelay::tell_resets() {
  uint64_t least = ~uint64_t(0);
  for (const int rank : mine_) least = std::min(least, told_[size_t(rank)].resets);
  bool any = false;
  for (const int rank : mine_) {
    Told& told = told_[size_t(rank)];
    if (told.resets != least || control_.seats()[rank].resets.load() == least) continue;
    Event event{};
    event.what = What::reset;
    event.rank = uint32_t(rank);
    event.number = ++told.resets;
    told.arrived = 0;
    tell(event, nullptr);
    any = true;
  }
  return any;
}

/// Returns the stop to send. Its number is 0 if there is none.
ControlRelay::Event ControlRelay::news_of_stop(std::string& why) {
  Event event{};
  event.what = What::stop;
  event.resets = control_.reset.passed.load(std::memory_order_acquire);
  const uint32_t stop = load_acquire(&control_.abort.stop);
  if (stop == 0 || stop_told_in_ == event.resets + 1) return event;
  event.rank = control_.abort.rank;
  if (control_.why_ready.load(std::memory_order_acquire))
    why.assign(control_.why, ::strnlen(control_.why, Control::why_bytes));
  event.bytes = uint32_t(why.size());
  // If a reset has happened meanwhile, the text just read may be part of another stop.
  if (control_.reset.passed.load(std::memory_order_acquire) != event.resets) return event;
  stop_told_in_ = event.resets + 1;
  event.number = stop;
  return event;
}

void ControlRelay::tell_rest(int rank) {
  Seat& seat = control_.seats()[rank];
  Told& told = told_[size_t(rank)];
  Event event{};
  event.rank = uint32_t(rank);
  if (const uint64_t launches = seat.launches.load(std::memory_order_acquire); launches != told.launches) {
    told.launches = launches;
    event.what = What::launches;
    event.number = launches;
    event.total = seat.call.load(std::memory_order_relaxed);
    tell(event, nullptr);
  }
  if (told.left || seat.presence.load(std::memory_order_acquire) != Presence::left) return;
  // First send all barriers and resets that the rank has entered.
  if (told.resets != seat.resets.load()) return;
  if (told.arrived < seat.arrived.load() &&
      control_.reset.passed.load(std::memory_order_acquire) == told.resets)
    return;
  told.left = true;
  event.what = What::left;
  tell(event, nullptr);
}

void ControlRelay::tell_arrival(int rank, uint64_t number, uint64_t resets) {
  const Seat& seat = control_.seats()[rank];
  const size_t half = number % 2;
  Event event{};
  event.what = What::arrived;
  event.rank = uint32_t(rank);
  event.number = number;
  event.resets = resets;
  event.collective = seat.collective[half];
  event.total = seat.total_bytes[half];
  const bool speaks = event.collective != Collective::barrier && event.collective != Collective::join;
  event.bytes = speaks ? uint32_t(std::min<uint64_t>(event.total, Seat::chunk_bytes)) : 0;
  tell(event, seat.chunk[half]);
}

void ControlRelay::tell(const Event& event, const void* data, const Link* except) {
  for (Link& link : links_) {
    if (&link != except && link.reads) send(link, event, data);
  }
}

/// Sends an event without waiting for room in the connection. The other host may also be waiting for room to
/// send, so this host must keep reading.
void ControlRelay::send(Link& link, const Event& event, const void* data) {
  std::vector<std::byte>& out = link.outgoing;
  const bool queued = !out.empty();
  if (!queued) link.moved = Clock::now();
  const auto* const head = reinterpret_cast<const std::byte*>(&event);
  const auto* const rest = static_cast<const std::byte*>(data);
  out.insert(out.end(), head, head + sizeof event);
  if (event.bytes) out.insert(out.end(), rest, rest + event.bytes);
  if (queued) return;
  flush(link);
  if (!out.empty()) wake();  // listen_all() now also polls for room
}

void ControlRelay::flush(Link& link) {
  std::vector<std::byte>& out = link.outgoing;
  for (size_t done = 0; done < out.size();) {
    const ssize_t sent =
        ::send(link.socket.get(), out.data() + done, out.size() - done, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      done += size_t(sent);
      link.moved = Clock::now();
      if (done < out.size()) continue;
    } else if (errno == EINTR) {
      continue;
    } else if (errno != EAGAIN || Clock::now() - link.moved > send_limit) {
      // The other end has gone, but its last messages may still be here to read. Or the other end does not
      // read.
      link.reads = false;
      if (errno == EAGAIN) ::shutdown(link.socket.get(), SHUT_RDWR);
      done = out.size();
    }
    out.erase(out.begin(), out.begin() + ptrdiff_t(done));
    return;
  }
}

/// Returns whether the other machine has received all events, or is gone.
bool ControlRelay::taken(Link& link) {
  flush(link);
  if (!link.reads) return true;
  if (!link.outgoing.empty()) return false;
  return has_all(link.socket.get());
}

void ControlRelay::wake() {
  const uint64_t one = 1;
  if (::write(wake_.get(), &one, sizeof one) != sizeof one) std::terminate();  // it cannot fail
}

// -- Listening

void ControlRelay::listen_all() {
  std::vector<pollfd> polled;
  for (const Link& link : links_) polled.push_back({link.socket.get(), POLLIN, 0});
  polled.push_back({wake_.get(), POLLIN, 0});
  while (!quit_) {
    if (::poll(polled.data(), polled.size(), -1) < 0) continue;  // a signal interrupted it
    if (uint64_t woken = 0; polled.back().revents != 0) {
      [[maybe_unused]] const ssize_t got = ::read(wake_.get(), &woken, sizeof woken);
    }
    const std::lock_guard lock(mutex_);
    for (size_t at = 0; at < links_.size(); ++at) {
      if (polled[at].revents & ~POLLOUT) read(links_[at]);
      if (polled[at].revents & POLLOUT) flush(links_[at]);
    }
    do_heard();
    // Events from one link may have to be forwarded to the others.
    for (size_t at = 0; at < links_.size(); ++at) {
      polled[at].events = short(POLLIN | (links_[at].outgoing.empty() ? 0 : POLLOUT));
      if (!links_[at].open) polled[at].fd = -1;
    }
  }
}

/// Reads the available events, and forwards them before any rank of this host can react to them.
void ControlRelay::read(Link& link) {
  std::byte part[64 << 10];
  const ssize_t got = ::recv(link.socket.get(), part, sizeof part, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    link.open = false;
    return;
  }
  std::vector<std::byte>& in = link.incoming;
  in.insert(in.end(), part, part + got);
  size_t done = 0;
  for (Event event; in.size() - done >= sizeof event; done += sizeof event + event.bytes) {
    std::memcpy(&event, in.data() + done, sizeof event);
    if (in.size() - done < sizeof event + event.bytes) break;
    const std::byte* const data = in.data() + done + sizeof event;
    if (host_ == 0) tell(event, data, &link);
    link.heard.push_back({event, {data, data + event.bytes}});
  }
  in.erase(in.begin(), in.begin() + ptrdiff_t(done));
}

void ControlRelay::do_heard() {
  for (Link& link : links_) {
    while (!link.heard.empty() && may_be_done(link.heard.front().event)) {
      do_one(link.heard.front());
      link.heard.pop_front();
    }
    // An event that is not applied yet may tell that these ranks have left.
    if (!link.open && !link.lost && link.heard.empty()) see_to_end(link);
  }
}

/// Returns false if the ranks of this host have not come that far yet.
bool ControlRelay::may_be_done(const Event& event) const {
  const uint64_t resets = control_.reset.passed.load(std::memory_order_acquire);
  switch (event.what) {
    case What::arrived:
      // In a stopped world no rank waits for an arrival.
      return event.resets <= resets &&
             (event.resets < resets || load_acquire(&control_.abort.stop) != 0 ||
              control_.barrier.passed.load(std::memory_order_acquire) + 1 >= event.number);
    case What::reset:
      return resets + 1 >= event.number;
    case What::stop:
      return event.resets <= resets;
    default:
      return true;
  }
}

void ControlRelay::do_one(const Heard& heard) {
  const Event& event = heard.event;
  if (event.rank >= uint32_t(group_.ranks())) return;
  Seat& seat = control_.seats()[event.rank];
  const uint64_t resets = control_.reset.passed.load(std::memory_order_acquire);
  switch (event.what) {
    case What::arrived: {
      if (event.resets < resets || load_acquire(&control_.abort.stop) != 0) return;
      const size_t half = event.number % 2;
      seat.collective[half] = event.collective;
      seat.total_bytes[half] = event.total;
      std::copy_n(heard.data.data(), std::min(heard.data.size(), Seat::chunk_bytes), seat.chunk[half]);
      group_.arrive(control_.barrier, &Seat::arrived, int(event.rank), event.number);
      return;
    }
    case What::reset:
      group_.arrive(control_.reset, &Seat::resets, int(event.rank), event.number);
      return;
    case What::launches:
      seat.call.store(event.total, std::memory_order_relaxed);
      seat.launches.store(event.number, std::memory_order_release);
      return;
    case What::stop:
      if (event.resets < resets) return;
      group_.raise_as_said(Stop(event.number), int(event.rank),
                           {reinterpret_cast<const char*>(heard.data.data()), heard.data.size()});
      if (host_ != 0) stop_told_in_ = event.resets + 1;  // rank 0's host has already told the others
      return;
    case What::left:
      seat.presence.store(Presence::left, std::memory_order_release);
      control_.leavers.fetch_add(1, std::memory_order_acq_rel);
      group_.ring();
      return;
    case What::refused:
      refusal_told_ = true;  // rank 0's host has already told the others
      control_.refusal.write(RunError::Reason(event.number),
                             {reinterpret_cast<const char*>(heard.data.data()), heard.data.size()});
      group_.ring();
      return;
  }
}

/// Marks the ranks behind a broken connection as left, because no more events of them can arrive. On rank 0's
/// host these are the ranks of one host. On another host these are the ranks of all other hosts.
void ControlRelay::see_to_end(Link& link) {
  link.lost = true;
  std::vector<int> gone;
  bool speaker_left = false;
  for (int rank = 0, first = -1; rank < group_.ranks(); ++rank) {
    if (host_ == 0 ? group_.host(rank) != link.host : group_.host(rank) == host_) continue;
    const bool left = control_.seats()[rank].presence.load(std::memory_order_acquire) == Presence::left;
    if (first < 0) speaker_left = left;
    if (first < 0) first = rank;
    if (!left) gone.push_back(rank);
  }
  if (gone.empty()) return;
  if (!speaker_left) {
    group_.raise_as_said(Stop::peer_lost, gone.front(),
                         fmt::format("{} died, or the connection to {} broke",
                                     group_.process_text(gone.front()), group_.host_text(gone.front())));
  }
  for (const int rank : gone) {
    control_.seats()[rank].presence.store(Presence::left, std::memory_order_release);
    control_.leavers.fetch_add(1, std::memory_order_acq_rel);
  }
  group_.ring();
}

}  // namespace chorale::world
