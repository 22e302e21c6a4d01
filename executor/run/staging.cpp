#include "staging.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "chorale/collective.hpp"
#include "chorale/device/vec.hpp"
#include "chorale/divided_up.hpp"
#include "chorale/layout.hpp"
#include "chorale/storage.hpp"

namespace chorale {
namespace {

/// Returns the number of parts of the longer buffer.
uint64_t parts_of(const Plan& plan) {
  const CollectiveInfo& info = collective_info(plan.collective);
  return std::max(info.input_parts(plan.ranks()), info.output_parts(plan.ranks()));
}

}  // namespace

void Staging::add_allocated(const void* at, uint64_t bytes) {
  allocated_.push_back({static_cast<const char*>(at), bytes});
}

bool Staging::allocated(const void* at, uint64_t bytes) const {
  const char* const begin = static_cast<const char*>(at);
  return std::any_of(allocated_.begin(), allocated_.end(), [&](const Allocated& one) {
    return begin >= one.at && begin + bytes <= one.at + one.bytes;
  });
}

const Staging::Reached& Staging::reached_of(const Plan& plan) {
  const uint64_t identity = plan.identity.number();
  const auto known = std::find_if(reached_.begin(), reached_.end(),
                                  [&](const Reached& one) { return one.identity == identity; });
  if (known != reached_.end()) return *known;
  constexpr size_t most_known = 256;
  if (reached_.size() == most_known) reached_.erase(reached_.begin());
  reached_.push_back(
      {identity, reached_by_peers(plan, BufferKind::input), reached_by_peers(plan, BufferKind::output)});
  return reached_.back();
}

Staging::How Staging::how(const Plan& plan, const Arguments& arguments) {
  if (!backend_->binds_to_addresses() || arguments.bytes == 0) return How::as_passed;
  const Reached& reached = reached_of(plan);
  if (!reached.input && !reached.output) return How::as_passed;
  const MessageSizes sizes = layout_of(plan, arguments.bytes, arguments.dtype).sizes;
  if ((!reached.input || allocated(arguments.in, sizes.input)) &&
      (!reached.output || allocated(arguments.out, sizes.output)))
    return How::as_passed;
  if (!backend_->can_publish(plan, multicast_)) return How::staged;
  const CollectiveInfo& info = collective_info(plan.collective);
  // Ranks publish only addresses of whole 16 bytes. A plan in place has its parts where their lengths say.
  const uint64_t part = info.input_is_part() ? sizes.input : info.output_is_part() ? sizes.output : 0;
  if (plan.inplace && part % unit_bytes != 0) return How::staged;
  if (std::max(sizes.input, sizes.output) <= most_published) return How::published;
  // Pieces of several parts are apart in memory, at addresses of whole 16 bytes.
  const uint64_t parts = parts_of(plan);
  const bool cuts = info.is_standard() && (parts == 1 || arguments.bytes / parts % unit_bytes == 0);
  return cuts ? How::published : How::staged;
}

void Staging::for_each_published(const Plan& plan, const Arguments& arguments,
                                 const std::function<void(const Arguments&, const Publishing&)>& visit) {
  if (arguments.bytes <= most_published) return visit(arguments, {true});
  constexpr uint64_t unit = 4096;
  const uint64_t parts = parts_of(plan), part = arguments.bytes / parts;
  const uint64_t most = std::max<uint64_t>(most_published / parts / unit, 1) * unit;
  // All pieces have about the same length, so that the last one is not too short for the plan.
  const uint64_t each = divided_up(divided_up(part, divided_up(part, most)), unit) * unit;
  const auto from = [](auto* at, uint64_t bytes) { return at ? at + bytes : nullptr; };
  Arguments piece = arguments;
  for (uint64_t begin = 0; begin < part; begin += each) {
    piece.in = from(static_cast<const char*>(arguments.in), begin);
    piece.out = from(static_cast<char*>(arguments.out), begin);
    piece.bytes = std::min(each, part - begin) * parts;
    visit(piece, {true, parts == 1 ? 0 : part});
  }
}

void Staging::for_each_piece(const Plan& plan, const Arguments& arguments,
                             const std::function<void(const Piece&)>& visit) const {
  const CollectiveInfo& info = collective_info(plan.collective);
  const MessageSizes sizes = layout_of(plan, arguments.bytes, arguments.dtype).sizes;
  const uint64_t in_parts = info.is_standard() ? info.input_parts(plan.ranks()) : 1;
  const uint64_t out_parts = info.is_standard() ? info.output_parts(plan.ranks()) : 1;
  // Pieces begin at multiples of 128 bytes, so that all words of a piece are as aligned as in the whole part.
  const uint64_t most = most_ / std::max(in_parts, out_parts) / 128 * 128;
  Piece piece{arguments, {in_parts, sizes.input / in_parts}, {out_parts, sizes.output / out_parts}};
  const uint64_t part = std::max(piece.in.distance, piece.out.distance);
  if (!info.is_standard() && part > most) {
    throw UsageError(fmt::format(
        "plan '{}' of the collective '{}' has an input of {} bytes and an output of {}, and peers "
        "access them: take memory of Executor::allocate() for more than {} bytes",
        plan.name, plan.collective, sizes.input, sizes.output, most));
  }
  piece.arguments.in = in_;
  piece.arguments.out = out_;
  for (piece.begin = 0; piece.begin < part; piece.begin += most) {
    for (Parts* const of : {&piece.in, &piece.out})
      of->bytes = std::min(most, of->distance - std::min(piece.begin, of->distance));
    piece.arguments.bytes = info.counts_output() ? piece.out.bytes * out_parts : piece.in.bytes * in_parts;
    visit(piece);
  }
}

void Staging::for_each_call(const Plan& plan, const Arguments& arguments,
                            const std::function<void(const Arguments&)>& visit) const {
  for_each_piece(plan, arguments, [&](const Piece& piece) { visit(piece.arguments); });
}

void Staging::allocate() {
  if (in_) return;
  in_ = static_cast<char*>(backend_->allocate(most_));
  out_ = static_cast<char*>(backend_->allocate(most_));
}

void Staging::run(const Plan& plan, const Arguments& arguments, void* stream,
                  const std::function<void(const Arguments&)>& execute) {
  allocate();
  char* const from = static_cast<char*>(const_cast<void*>(arguments.in));
  char* const to = static_cast<char*>(arguments.out);
  for_each_piece(plan, arguments, [&](const Piece& piece) {
    const auto& [parts_in, distance_in, bytes_in] = piece.in;
    const auto& [parts_out, distance_out, bytes_out] = piece.out;
    if (from && bytes_in)
      backend_->copy_rows({in_, bytes_in}, {from + piece.begin, distance_in}, bytes_in, parts_in, stream);
    execute(piece.arguments);
    if (to && bytes_out)
      backend_->copy_rows({to + piece.begin, distance_out}, {out_, bytes_out}, bytes_out, parts_out, stream);
  });
}

}  // namespace chorale
