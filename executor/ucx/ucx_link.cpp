#include "ucx_link.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <deque>
#include <list>
#include <new>
#include <utility>

#include "chorale/error.hpp"
#include "ucx_library.hpp"

namespace chorale::ucx {
namespace {

using Clock = std::chrono::steady_clock;

constexpr unsigned message_id = 0;
constexpr std::chrono::seconds closing_patience{1};  // the wait for UCX to close its connections

}  // namespace

struct UcxLink::State {
  struct Peer {
    State* link = nullptr;
    int number = 0;
    std::vector<std::byte> address;
    ucp_ep_h endpoint = nullptr;
    bool lost = false;
  };

  /// Holds a message while UCX sends it.
  struct Outgoing {
    State* link;
    std::list<Outgoing>::iterator self;
    std::vector<std::byte> header;
    Payload payload;
  };

  /// Holds a large message of which only the header has arrived.
  struct Incoming {
    State* link;
    std::list<Incoming>::iterator self;
    std::vector<std::byte> header;
    Payload payload;
    void* descriptor;
  };

  const UcxLibrary& ucx = UcxLibrary::get();
  Events events;
  ucp_context_h context = nullptr;
  ucp_worker_h worker = nullptr;
  int bell = -1;  ///< readable when something has arrived
  std::vector<Peer> peers;
  std::list<Outgoing> outgoing;
  std::list<Incoming> incoming;
  std::deque<Incoming*> announced;  ///< the messages of `incoming` that must be fetched
  std::deque<std::pair<int, std::string>> losses;
  std::vector<size_t> too_large;  ///< bytes
  size_t unsent = 0;
  bool closing = false;

  explicit State(int n, Events of) : events(std::move(of)), peers(size_t(n)) {
    for (int peer = 0; peer < n; ++peer) {
      peers[size_t(peer)].link = this;
      peers[size_t(peer)].number = peer;
    }
    const UcxTalk talk;
    try {
      open();
    } catch (...) {
      close();
      throw;
    }
  }

  ~State() {
    const UcxTalk talk;
    close();
  }

  void require(ucs_status_t status, const char* what) const {
    if (status == UCS_OK) return;
    throw RunError(RunError::Reason::other,
                   fmt::format("UCX cannot connect this host with others: {}: {}; see UCX_TLS and "
                               "UCX_NET_DEVICES, and UCX_LOG_LEVEL=info for what it finds",
                               what, ucx.ucs_status_string(status)));
  }

  /// Sets an option, unless the user has set it.
  void set(ucp_config_t* config, const char* name, const char* value) const {
    if (!std::getenv((std::string("UCX_") + name).c_str())) ucx.ucp_config_modify(config, name, value);
  }

  void open() {
    ucp_config_t* config = nullptr;
    require(ucx.ucp_config_read(nullptr, nullptr, &config), "its settings");
    // UCX's cache of registered memory hooks the application's memory functions. It would not help us,
    // because each message is in new memory.
    set(config, "RCACHE_ENABLE", "n");
    set(config, "IB_REG_METHODS", "direct");
    set(config, "WARN_INVALID_CONFIG", "n");
    ucp_params_t parameters{};
    parameters.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_NAME;
    parameters.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
    parameters.name = "chorale";
    const ucs_status_t status =
        ucx.ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &parameters, config, &context);
    ucx.ucp_config_release(config);
    require(status, "a context");

    ucp_worker_params_t of_worker{};
    of_worker.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    of_worker.thread_mode = UCS_THREAD_MODE_SERIALIZED;
    require(ucx.ucp_worker_create(context, &of_worker, &worker), "a worker");
    require(ucx.ucp_worker_get_efd(worker, &bell), "a descriptor to sleep on");

    ucp_am_handler_param_t handler{};
    handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                         UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
    handler.id = message_id;
    handler.flags = UCP_AM_FLAG_WHOLE_MSG;
    handler.cb = &State::received;
    handler.arg = this;
    require(ucx.ucp_worker_set_am_recv_handler(worker, &handler), "a handler of messages");
  }

  void close() {
    closing = true;
    std::vector<void*> requests;
    for (Peer& peer : peers) {
      if (!peer.endpoint) continue;
      ucp_request_param_t how{};
      how.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
      how.flags = UCP_EP_CLOSE_FLAG_FORCE;
      void* const request = ucx.ucp_ep_close_nbx(std::exchange(peer.endpoint, nullptr), &how);
      if (UCS_PTR_IS_PTR(request)) requests.push_back(request);
    }
    const auto limit = Clock::now() + closing_patience;
    for (void* const request : requests) {
      while (ucx.ucp_request_check_status(request) == UCS_INPROGRESS && Clock::now() < limit)
        ucx.ucp_worker_progress(worker);
      ucx.ucp_request_free(request);
    }
    if (worker) ucx.ucp_worker_destroy(std::exchange(worker, nullptr));
    if (context) ucx.ucp_cleanup(std::exchange(context, nullptr));
  }

  // -- Peers

  static void failed(void* of, ucp_ep_h, ucs_status_t status) {
    Peer& peer = *static_cast<Peer*>(of);
    peer.link->lose(peer, status);
  }

  void lose(Peer& peer, ucs_status_t status) {
    if (std::exchange(peer.lost, true) || closing) return;
    losses.emplace_back(peer.number, ucx.ucs_status_string(status));
  }

  ucp_ep_h endpoint(Peer& peer) {
    if (peer.endpoint || peer.lost) return peer.endpoint;
    ucp_ep_params_t parameters{};
    parameters.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                            UCP_EP_PARAM_FIELD_ERR_HANDLER;
    parameters.address = reinterpret_cast<const ucp_address_t*>(peer.address.data());
    parameters.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    parameters.err_handler.cb = &State::failed;
    parameters.err_handler.arg = &peer;
    const ucs_status_t status = ucx.ucp_ep_create(worker, &parameters, &peer.endpoint);
    if (status != UCS_OK) {
      peer.endpoint = nullptr;
      lose(peer, status);
    }
    return peer.endpoint;
  }

  // -- Messages

  static void sent(void* request, ucs_status_t, void* of) {
    Outgoing& message = *static_cast<Outgoing*>(of);
    State& link = *message.link;
    link.ucx.ucp_request_free(request);
    link.forget(message);
  }

  void forget(Outgoing& message) {
    unsent -= message.payload.bytes;
    outgoing.erase(message.self);
  }

  void send(Peer& peer, std::span<const std::byte> header, Payload payload) {
    const ucp_ep_h to = endpoint(peer);
    if (!to || peer.lost) return;
    unsent += payload.bytes;
    outgoing.push_front({this, {}, {header.begin(), header.end()}, std::move(payload)});
    Outgoing& message = outgoing.front();
    message.self = outgoing.begin();
    ucp_request_param_t how{};
    how.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    how.cb.send = &State::sent;
    how.user_data = &message;
    void* const request = ucx.ucp_am_send_nbx(to, message_id, message.header.data(), message.header.size(),
                                              message.payload.data.get(), message.payload.bytes, &how);
    if (UCS_PTR_IS_PTR(request)) return;
    if (UCS_PTR_IS_ERR(request)) lose(peer, UCS_PTR_STATUS(request));
    forget(message);
  }

  static ucs_status_t received(void* of, const void* header, size_t header_bytes, void* data, size_t bytes,
                               const ucp_am_recv_param_t* how) {
    State& link = *static_cast<State*>(of);
    if (link.closing) return UCS_OK;
    try {
      return link.receive({static_cast<const std::byte*>(header), header_bytes}, data, bytes, *how);
    } catch (const std::bad_alloc&) {
      link.too_large.push_back(bytes);
      return UCS_OK;
    }
  }

  ucs_status_t receive(std::span<const std::byte> header, void* data, size_t bytes,
                       const ucp_am_recv_param_t& how) {
    if (how.recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) {
      incoming.push_front({this, {}, {header.begin(), header.end()}, Payload(bytes), data});
      Incoming& message = incoming.front();
      message.self = incoming.begin();
      announced.push_back(&message);
      return UCS_INPROGRESS;
    }
    Payload payload(bytes);
    if (bytes) std::memcpy(payload.data.get(), data, bytes);
    events.message(header, std::move(payload));
    return UCS_OK;
  }

  static void fetched(void* request, ucs_status_t status, size_t, void* of) {
    Incoming& message = *static_cast<Incoming*>(of);
    State& link = *message.link;
    link.ucx.ucp_request_free(request);
    link.finish(message, status);
  }

  /// Delivers a message that was fetched. If its sender has died, the fetch fails and the message is dropped.
  /// The death is reported as a lost peer.
  void finish(Incoming& message, ucs_status_t status) {
    const size_t bytes = message.payload.bytes;
    try {
      if (status == UCS_OK && !closing) events.message(message.header, std::move(message.payload));
    } catch (const std::bad_alloc&) {
      too_large.push_back(bytes);
    }
    incoming.erase(message.self);
  }

  void fetch(Incoming& message) {
    ucp_request_param_t how{};
    how.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    how.cb.recv_am = &State::fetched;
    how.user_data = &message;
    void* const request = ucx.ucp_am_recv_data_nbx(worker, message.descriptor, message.payload.data.get(),
                                                   message.payload.bytes, &how);
    if (!UCS_PTR_IS_PTR(request)) finish(message, UCS_PTR_STATUS(request));
  }

  bool progress() {
    bool any = ucx.ucp_worker_progress(worker) != 0;
    for (; !announced.empty(); any = true) {
      Incoming* const message = announced.front();
      announced.pop_front();
      fetch(*message);
    }
    for (; !losses.empty(); any = true) {
      const auto [peer, why] = losses.front();
      losses.pop_front();
      events.lost(peer, why);
    }
    for (; !too_large.empty(); any = true) {
      const size_t bytes = too_large.back();
      too_large.pop_back();
      events.too_large(bytes);
    }
    return any;
  }
};

std::string UcxLink::missing() { return UcxLibrary::problem(); }

UcxLink::UcxLink(int peers, Events events) : state_(std::make_unique<State>(peers, std::move(events))) {}
UcxLink::~UcxLink() = default;

std::vector<std::byte> UcxLink::address() const {
  const UcxTalk talk;
  ucp_address_t* address = nullptr;
  size_t bytes = 0;
  state_->require(state_->ucx.ucp_worker_get_address(state_->worker, &address, &bytes), "an address");
  const auto* const first = reinterpret_cast<const std::byte*>(address);
  const std::vector<std::byte> copy(first, first + bytes);
  state_->ucx.ucp_worker_release_address(state_->worker, address);
  return copy;
}

void UcxLink::connect(int peer, std::span<const std::byte> address) {
  state_->peers.at(size_t(peer)).address.assign(address.begin(), address.end());
}

void UcxLink::send(int peer, std::span<const std::byte> header, Payload payload) {
  const UcxTalk talk;
  state_->send(state_->peers.at(size_t(peer)), header, std::move(payload));
}

bool UcxLink::progress() {
  const UcxTalk talk;
  return state_->progress();
}

size_t UcxLink::unsent_bytes() const { return state_->unsent; }

bool UcxLink::flushed(Flush& flush) {
  const UcxTalk talk;
  const UcxLibrary& ucx = state_->ucx;
  if (!flush.begun) {
    const ucp_request_param_t how{};
    void* const request = ucx.ucp_worker_flush_nbx(state_->worker, &how);
    flush.request = UCS_PTR_IS_PTR(request) ? request : nullptr;
    flush.begun = true;
  }
  if (!flush.request) return true;
  if (ucx.ucp_request_check_status(flush.request) == UCS_INPROGRESS) return false;
  ucx.ucp_request_free(std::exchange(flush.request, nullptr));
  return true;
}

void UcxLink::sleep(std::chrono::milliseconds limit) {
  {
    const UcxTalk talk;
    if (!state_->announced.empty() || !state_->losses.empty() || !state_->too_large.empty()) return;
    if (state_->ucx.ucp_worker_arm(state_->worker) != UCS_OK) return;  // something has already arrived
  }
  pollfd look{.fd = state_->bell, .events = POLLIN, .revents = 0};
  ::poll(&look, 1, int(limit.count()));
}

void UcxLink::wake() {
  // Any thread may call this, whatever the worker's thread mode.
  state_->ucx.ucp_worker_signal(state_->worker);
}

}  // namespace chorale::ucx
