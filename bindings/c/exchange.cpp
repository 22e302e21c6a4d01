#include <chorale/error.hpp>
#include <chorale/exchange.hpp>

#include "device.hpp"
#include "objects.hpp"
#include "status.hpp"
#include "values.hpp"

using namespace chorale;
using namespace chorale::c;

namespace {

ExchangeOptions options_of(const chorale_exchange_options* options) {
  if (!options) return {};
  require_size("options", options->struct_bytes, sizeof *options);
  require_zeros("options", options, sizeof *options, options->struct_bytes);
  return {.slot_bytes = options->slot_bytes,
          .slots = options->slots,
          .blocks_per_peer = options->blocks_per_peer};
}

/// Converts messages to the C++ form.
template <class Message, class Given>
std::vector<Message> messages_of(const char* name, const Given* given, uint64_t count) {
  if (count != 0) required(name, given);
  std::vector<Message> messages;
  for (uint64_t at = 0; at < count; ++at) {
    const Given& one = given[at];
    if (one.reserved != 0)
      throw UsageError(std::string("'reserved' of a message in '") + name + "' is not 0");
    messages.push_back({one.data, one.bytes, one.peer});
  }
  return messages;
}

}  // namespace

chorale_status chorale_exchange_create(chorale_world* world, chorale_config* config, chorale_backend backend,
                                       int32_t device, const chorale_exchange_options* options,
                                       chorale_exchange** exchange) {
  return guarded(__func__, [&] {
    chorale_exchange*& out = result("exchange", exchange);
    const std::shared_ptr<WorldObject> of = get(world);
    const Config settings = config_on(config, backend, device);
    const ExchangeOptions chosen = options_of(options);
    const Use use(of->in_use);
    make_current(device);
    out = c::open<chorale_exchange>(
        std::make_shared<ExchangeObject>(ExchangeObject{{of, Exchange(of->world, chosen, settings)}}));
  });
}

chorale_status chorale_exchange_run(chorale_exchange* exchange, const chorale_send_to* sends,
                                    uint64_t send_count, const chorale_recv_from* recvs, uint64_t recv_count,
                                    void* stream) {
  return guarded(__func__, [&] {
    const std::vector<SendTo> to = messages_of<SendTo>("sends", sends, send_count);
    const std::vector<RecvFrom> from = messages_of<RecvFrom>("recvs", recvs, recv_count);
    alone(exchange, [&](Exchange& by) { by.exchange(to, from, stream); });
  });
}

chorale_status chorale_exchange_send(chorale_exchange* exchange, const void* data, uint64_t bytes,
                                     int32_t peer, void* stream) {
  return guarded(__func__,
                 [&] { alone(exchange, [&](Exchange& by) { by.send(data, bytes, peer, stream); }); });
}

chorale_status chorale_exchange_recv(chorale_exchange* exchange, void* data, uint64_t bytes, int32_t peer,
                                     void* stream) {
  return guarded(__func__,
                 [&] { alone(exchange, [&](Exchange& by) { by.recv(data, bytes, peer, stream); }); });
}

chorale_status chorale_exchange_check(chorale_exchange* exchange) {
  return guarded(__func__, [&] { alone(exchange, [](Exchange& by) { by.check(); }); });
}

chorale_status chorale_exchange_synchronize(chorale_exchange* exchange, void* stream) {
  return guarded(__func__, [&] { alone(exchange, [&](Exchange& by) { by.synchronize(stream); }); });
}

chorale_status chorale_exchange_reset(chorale_exchange* exchange) {
  return guarded(__func__, [&] { alone(exchange, [](Exchange& by) { by.reset(); }); });
}

chorale_status chorale_exchange_close(chorale_exchange* exchange) {
  return guarded(__func__, [&] { close_alone(exchange); });
}
