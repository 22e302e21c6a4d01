// In place, some buffers are part of another one. Such a part begins at a different offset on each rank. But
// to the address of a peer's buffer, MSCCL++ adds the offset at which this rank's buffer begins in its
// allocation. Over a port channel it reads from the beginning of the allocation.

#include "checks.hpp"
#include "chorale/collective.hpp"

namespace chorale::mscclpp {
namespace {

/// Names the buffer that is a part of `whole` in place.
struct Nested {
  BufferKind part, whole;
};

std::optional<Nested> nested_buffer(const Plan& plan) {
  if (!plan.inplace) return std::nullopt;
  const CollectiveInfo& collective = collective_info(plan.collective);
  if (collective.input_is_part()) return Nested{BufferKind::input, BufferKind::output};
  if (collective.output_is_part()) return Nested{BufferKind::output, BufferKind::input};
  return std::nullopt;
}

std::string word(BufferKind kind) { return std::string(buffer_names[size_t(kind)]); }

}  // namespace

void in_place(const Plan& plan, Finder& find) {
  const std::optional<Nested> nested = nested_buffer(plan);
  if (!nested) return;
  const std::string part = word(nested->part), whole = word(nested->whole);
  const std::string help = "name the same chunk through the " + whole;
  for_each_op(plan, [&](const Gpu& gpu, const ThreadBlock& block, const Op& op, const Op*, OpPlace at) {
    const auto add = [&](const Field& field, const Operand& operand, const std::string& whose,
                         const std::string& wrong) {
      find.add(at,
               std::string(field.name) + " of " + name_of(op) + " is chunk " + number(operand.index) +
                   " of the " + part + " of " + whose + ", in place a part of its " + whole +
                   ", but MSCCL++ " + wrong,
               help, operand_path(block, op, operand));
    };
    const std::string own_offset = "takes it from where that of " + rank_name(gpu.id) + " begins";
    for_each_operand(block, op, [&](const Field& field, const Operand& operand) {
      if (is_remote(field.role)) {
        const RemoteBuffer* buffer = remote_buffer(gpu, block, op.via, operand.ref);
        if (buffer && buffer->buffer == nested->part)
          add(field, operand, rank_name(buffer->rank), own_offset);
      } else if (is_switched(field.role)) {
        const SwitchGroup group = switch_group(gpu, block, operand.ref);
        if (group.ranks && group.buffer == nested->part) add(field, operand, "each member", own_offset);
      } else if (has_proxy(op.via) && BufferKind(operand.ref) == nested->part) {
        // The proxy reads for the thread block.
        add(field, operand, rank_name(gpu.id), "takes it from where the " + whole + " begins");
      }
    });
  });
}

}  // namespace chorale::mscclpp
