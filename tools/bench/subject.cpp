#include "tools/bench/subject.hpp"

#include "chorale/needs.hpp"
#include "tools/command.hpp"
#include "tools/oracle.hpp"

namespace chorale::tools {

Subject subject_of(const NamedPlan& named, const BenchRequest& request) {
  Subject subject;
  subject.name = named.name;
  subject.collective = named.plan.collective;
  subject.plan = &named.plan;
  subject.blocks = named.plan.thread_blocks();
  subject.in_place = named.plan.inplace;
  subject.op = request.override_op.value_or(reduce_op_of(named.plan));
  subject.packet = request.packet;
  for (size_t which = 0; which < request.sizes.size(); ++which) {
    Case& one = subject.cases.emplace_back();
    one.bytes = request.sizes[which];
    try {
      one.sizes = message_sizes(named.plan, one.bytes, request.dtype);
      const uint64_t width = dtype_size(request.dtype);
      one.oracle = std::make_shared<Oracle>(
          named.plan,
          Oracle::Case{request.dtype, subject.op, one.sizes.input / width, one.sizes.output / width, which});
    } catch (const UsageError& error) {
      one.refused = error.what();
    } catch (const Failure& failure) {
      one.refused = failure.what();
    }
  }
  return subject;
}

}  // namespace chorale::tools
