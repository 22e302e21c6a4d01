// This check requires encoded operands to be whole blocks. Chunks begin and end between blocks, because
// layout_of() makes their size a multiple of the longest block, and so do the slices of thread block groups.
// Only the unit of a pipeline could end within a block.
//
// Encoded elements are in scratch, because the application's buffers have plain elements. Only threads encode
// and decode. An operation has one codec; data in another one has to be decoded first.

#include <algorithm>

#include "chorale/checks.hpp"
#include "compiler/plan/report.hpp"
#include "compiler/plan/resolve.hpp"
#include "compiler/plan/roles.hpp"

namespace chorale {
namespace {

/// A unit of a pipeline is a multiple of this many bytes per element, so that it ends between blocks whatever
/// the type of the elements is.
constexpr uint64_t longest_element = sizeof(float);

class Codecs {
 public:
  Codecs(const Plan& plan, Report& report) : plan_(plan), report_(report) {}

  void operation(const Gpu& gpu, const ThreadBlock& block, const Op& op, const Op* loop, OpPlace at) {
    const Operand* first = nullptr;
    for_each_operand(block, op, [&](const Field& field, const Operand& operand) {
      if (!operand.codec) return;
      const auto find = [&](const std::string& text, std::string help = {}) {
        report_.add(at, std::string(field.name) + " " + text, std::move(help),
                    operand_path(block, op, operand) + "/codec");
      };
      if (operand.codec > plan_.extension.codecs.size()) {
        find("has codec " + number(operand.codec - 1) + ", but the plan has " +
             count(plan_.extension.codecs.size(), "codec"));
        return;
      }
      if (shape(op.code).has_any(packet_roles | switched_roles) || has_proxy(op.via)) {
        find("is encoded, but '" + std::string(info(op.code).name) + "'" +
                 (has_proxy(op.via) ? " over a port channel" : "") + " moves elements as they are",
             "encode and decode by copy, put, get and reductions over memory channels");
        return;
      }
      const RemoteBuffer* const remote =
          is_remote(field.role) ? remote_buffer(gpu, block, op.via, operand.ref) : nullptr;
      const uint32_t buffer = remote ? uint32_t(remote->buffer) : operand.ref;
      if (buffer != uint32_t(BufferKind::scratch)) {
        find("is encoded in the " + std::string(buffer_names[buffer]) + " buffer, expected scratch",
             "input and output have plain elements: encode into scratch");
        return;
      }
      if (first && first->codec != operand.codec)
        find("is encoded by codec " + number(operand.codec - 1) + ", but another operand by codec " +
                 number(first->codec - 1),
             "decode one of them into plain scratch first");
      if (!first) first = &operand;
      const uint64_t unit = plan_.extension.codecs[operand.codec - 1].block * longest_element;
      if (loop && loop->unit_bytes % unit)
        find("is encoded in blocks of " + number(unit / longest_element) + " elements, up to " +
                 number(unit) + " bytes, but the pipeline's unit of " + count(loop->unit_bytes, "byte") +
                 " cuts a block",
             "make the unit a multiple of " + count(unit, "byte"));
    });
  }

 private:
  const Plan& plan_;
  Report& report_;
};

}  // namespace

void pass::codecs(const Plan& plan, Diagnostics& out) {
  Report report("codecs", out);
  const std::vector<Codec>& all = plan.extension.codecs;
  if (all.size() > most_codecs)
    report.add_at("/chorale/codecs",
                  "the plan has " + count(all.size(), "codec") + ", expected at most " + number(most_codecs));
  for (size_t at = 0; at < all.size(); ++at) {
    if (all[at].is_valid()) continue;
    report.add_at(path_of("chorale", "codecs", at, "block"),
                  "codec " + number(at) + " has blocks of " + count(all[at].block, "element") +
                      ", expected a power of two from " + number(Codec::least_block) + " to " +
                      number(Codec::most_block));
  }
  Codecs codecs(plan, report);
  for_each_op(plan, [&](const Gpu& gpu, const ThreadBlock& block, const Op& op, const Op* loop, OpPlace at) {
    if (op.sources + op.destinations != 0) codecs.operation(gpu, block, op, loop, at);
  });
}

}  // namespace chorale
