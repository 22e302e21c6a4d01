#include "chorale/host/dump.hpp"

#include <fmt/format.h>

#include "compiler/json/json.hpp"

namespace chorale::host {
namespace {

/// Writes an author's text on one line.
std::string in_quotes(std::string_view text) {
  std::string out;
  json::quote(out, text);
  return out;
}

class Dump {
 public:
  explicit Dump(const Schedule& schedule) : s_(schedule) {}

  std::string whole(std::string_view name, const std::vector<Op>& ops, bool with_lanes) {
    out_ = fmt::format("%HostProgram {} {{ ranks=D", name);
    if (s_.pool != Expr{}) out_ += " lanes=" + expr(s_.pool);
    for (const auto& [key, value] : s_.made_with) out_ += fmt::format(" {}={}", key, value);
    out_ += fmt::format(" }} ({}) -> ({}) :\n", signature(Role::in), signature(Role::out));
    indent_ = 1;
    if (with_lanes) {
      allocations();
      line("%main = CurrentLane()");
    }
    body(ops);
    return out_ + "} // %HostProgram\n";
  }

 private:
  std::string expr(Expr expr) const {
    const ExprNode& node = s_.exprs[expr];
    if (node.kind == ExprKind::symbol && s_.exprs.symbols()[size_t(node.value)] == "ranks") return "D";
    if (node.kind == ExprKind::symbol && s_.exprs.symbols()[size_t(node.value)] == "lanes") return "L";
    if (node.kind == ExprKind::constant || node.kind == ExprKind::symbol) return text(s_.exprs, expr);
    return fmt::format("( {} {} {} )", this->expr(node.left), mnemonic(node.kind), this->expr(node.right));
  }

  void line(const std::string& text) { out_ += std::string(2 * indent_, ' ') + text + "\n"; }

  std::string shape(const Tensor& tensor) const {
    std::string list;
    for (const Axis& axis : tensor.axes) {
      constexpr std::string_view words[] = {"", "@rank ", "@lane "};
      list += fmt::format("{}{}{}", list.empty() ? "" : ", ", words[size_t(axis.tag)], expr(axis.extent));
    }
    return fmt::format("{} {}[{}]", tensor.name, dtype_name(tensor.dtype), list);
  }
  std::string signature(Role role) const {
    std::string list;
    for (const Tensor& tensor : s_.tensors)
      if (tensor.role == role) list += (list.empty() ? "" : ", ") + shape(tensor);
    return list;
  }
  /// Returns the bytes on one rank. An axis that is spread over the ranks counts once.
  std::string bytes(const Tensor& tensor) const {
    std::string product;
    for (const Axis& axis : tensor.axes) {
      if (axis.tag == Tag::ranks) continue;
      product = product.empty() ? expr(axis.extent) : fmt::format("( {} * {} )", product, expr(axis.extent));
    }
    return product.empty() ? std::to_string(dtype_size(tensor.dtype))
                           : fmt::format("( {} * {} )", product, dtype_size(tensor.dtype));
  }
  /// Writes the results, whole, outside all loops. Temporaries stand where their author has put them.
  void allocations() {
    for (const Tensor& tensor : s_.tensors)
      if (tensor.role == Role::out) alloc(tensor);
  }
  void alloc(const Tensor& tensor) {
    line(fmt::format("{} = Alloc(space={}, bytes={}, zero={})",
                     tensor.role == Role::temp ? shape(tensor) : tensor.name,
                     space_names[size_t(tensor.space)], bytes(tensor), tensor.zero));
  }

  std::string lane(const Lane& lane) const {
    if (lane.kind == Lane::Kind::main) return "%main";
    return lane.kind == Lane::Kind::named ? s_.lanes[lane.name] : fmt::format("pool[{}]", expr(lane.index));
  }
  std::string lanes(const std::vector<Lane>& list) const {
    std::string text;
    for (const Lane& one : list) text += (text.empty() ? "" : ", ") + lane(one);
    return text;
  }
  /// A view has the name of its tensor and of its selects; a statement in front says what it is.
  std::string view(const View& view) {
    std::string name = s_.tensors[view.tensor].name;
    for (const Select& select : view.selects) {
      const ExprNode& node = s_.exprs[select.lo];
      const bool plain = node.kind == ExprKind::constant || node.kind == ExprKind::symbol;
      const std::string from = name;
      const std::string part =
          select.len ? fmt::format("Slice({}, axis={}, first={}, length={})", from, select.axis,
                                   expr(select.lo), expr(*select.len))
                     : fmt::format("Select({}, axis={}, index={})", from, select.axis, expr(select.lo));
      const std::string plainly = name + "." + (plain && !select.len ? expr(select.lo) : std::string("s"));
      name = plainly;
      for (int number = 2; !named_.emplace(name, part).second && named_[name] != part; ++number)
        name = plainly + std::to_string(number);
      line(fmt::format("{} = {}", name, part));
    }
    return name;
  }
  std::string views(const std::vector<View>& list) {
    std::string text;
    for (const View& one : list) text += (text.empty() ? "" : ", ") + view(one);
    return text;
  }

  void on(const Op& op) {
    const std::string name = lane(op.lane);
    if (name == lane_) return;
    line(fmt::format("SetLane({})", name));
    lane_ = name;
  }

  void transfer(const Transfer& one, const std::string& name) {
    line(fmt::format("{} #{} ({}={}, peer={}, via={})", one.is_send ? "Send" : "Recv", ++number_,
                     one.is_send ? "src" : "dst", name, expr(one.peer), mover_names[size_t(one.mover)]));
  }

  /// Returns "#3", or "#3[i]" if turns of a loop have their own.
  std::string token(const Op& op) const {
    const auto known = tokens_.find(op.token);
    const std::string number = fmt::format("#{}", known == tokens_.end() ? op.token : known->second);
    return op.index == Expr{} ? number : fmt::format("{}[{}]", number, expr(op.index));
  }

  void group(const Op& op) {
    std::vector<std::string> names;
    for (const Transfer& one : op.transfers) names.push_back(view(one.view));
    if (op.kind != OpKind::group) return transfer(op.transfers[0], names[0]);
    line("GroupBegin");
    ++indent_;
    for (size_t k = 0; k < names.size(); ++k) transfer(op.transfers[k], names[k]);
    --indent_;
    tokens_[op.token] = ++number_;
    line(fmt::format("GroupEnd {}", token(op)));
  }

  void body(const std::vector<Op>& ops) {
    for (const Op& op : ops) {
      if (info(op.kind).has(Field::Lane) && op.kind != OpKind::fork && op.kind != OpKind::join) on(op);
      one(op);
    }
  }
  void nested(const std::vector<Op>& ops) {
    ++indent_;
    body(ops);
    --indent_;
  }

  void one(const Op& op) {
    named_.clear();
    switch (op.kind) {
      case OpKind::alloc:
        return alloc(s_.tensors[op.writes[0].tensor]);
      case OpKind::free_:
        return line(fmt::format("Free({})", s_.tensors[op.writes[0].tensor].name));
      case OpKind::share:
        return line(fmt::format("Share({})", s_.tensors[op.writes[0].tensor].name));
      case OpKind::copy: {
        const std::string to = view(op.writes[0]);
        const std::string from = view(op.reads[0]);
        return line(fmt::format("{} = Copy({})", to, from));
      }
      case OpKind::fill:
        return line(fmt::format("{} = Fill({})", view(op.writes[0]), expr(op.value)));
      case OpKind::send:
      case OpKind::recv:
      case OpKind::group:
        return group(op);
      case OpKind::wait:
        return line(fmt::format("Wait({})", token(op)));
      case OpKind::collective: {
        const std::string to = view(op.writes[0]), from = view(op.reads[0]);
        tokens_[op.token] = ++number_;
        return line(fmt::format("Collective {} ({}, dst={}, src={}, root={}, reduce={})", token(op), op.name,
                                to, from, expr(op.peer), reduce_op_name(op.reduce)));
      }
      case OpKind::launch: {
        const std::string to = view(op.writes[0]), from = view(op.reads[0]);
        return line(fmt::format("Launch({}, dst={}, src={})", op.name, to, from));
      }
      case OpKind::call:
      case OpKind::compute: {
        // A temporary of a layout has no other place to say what it is.
        const bool whole = op.kind == OpKind::compute && op.writes.size() == 1 &&
                           s_.tensors[op.writes[0].tensor].role == Role::temp;
        const std::string to = whole ? shape(s_.tensors[op.writes[0].tensor]) : views(op.writes);
        std::string from = views(op.reads);
        for (const auto& [key, value] : op.attributes)
          from += fmt::format("{}{}={}", from.empty() ? "" : ", ", key, expr(value));
        return line(fmt::format("{} = {}{}({})", to, op.kind == OpKind::call ? "Call " : "", op.name, from));
      }
      case OpKind::after:
        return line(fmt::format("After({})", lanes(op.lanes)));
      case OpKind::fork:
        return line(fmt::format("Fork({} after {})", lanes(op.lanes), lane(op.lane)));
      case OpKind::join:
        return line(fmt::format("Join({} after {})", lane(op.lane), lanes(op.lanes)));
      case OpKind::for_:
        line(fmt::format("FOR {} in [{}, {}):", op.name, expr(op.lo), expr(op.hi)));
        lane_.clear();
        nested(op.body);
        lane_.clear();
        return;
      case OpKind::if_: {
        line(fmt::format("IF {}:", expr(op.value)));
        const std::string before = lane_;
        nested(op.body);
        const bool changed = lane_ != before;
        if (!op.orelse.empty()) {
          line("ELSE:");
          lane_ = before;
          nested(op.orelse);
        }
        if (changed || lane_ != before) lane_.clear();
        return;
      }
      case OpKind::barrier:
        return line("Barrier(world)");
      case OpKind::post:
      case OpKind::take:
        return line(fmt::format("{}({}[{}], peer={})", op.kind == OpKind::post ? "Post" : "Take",
                                s_.flags[op.flag].name, expr(op.index), expr(op.peer)));
      case OpKind::mark:
        return line(fmt::format("Mark({})", in_quotes(op.name)));
    }
  }

  const Schedule& s_;
  std::string out_, lane_ = "%main";
  size_t indent_ = 0;
  uint32_t number_ = 0;
  std::map<uint32_t, uint32_t> tokens_;
  std::map<std::string, std::string> named_;  // the views of an operation, which are told apart
};

std::string boxes(const Concrete& made, const std::vector<Box>& list) {
  std::string all;
  for (const Box& box : list) all += (all.empty() ? "" : ", ") + text(made, box);
  return all;
}

/// Says what a step does, without its lane.
std::string what(const Concrete& made, const Step& step) {
  const std::string name(step_names[size_t(step.kind)]);
  switch (step.kind) {
    case StepKind::after: {
      std::string lanes;
      for (const uint32_t lane : step.lanes) lanes += (lanes.empty() ? "" : ", ") + made.lanes[lane];
      return fmt::format("after {}{}", lanes, step.token ? fmt::format(" up to mark {}", step.token) : "");
    }
    case StepKind::post:
    case StepKind::take:
      return fmt::format("{} {} {} rank {}", name, made.flags[step.flag].name,
                         step.kind == StepKind::post ? "at" : "from", step.peer);
    case StepKind::put:
      return fmt::format("put {} = {} at rank {}", text(made, step.writes[0]), text(made, step.reads[0]),
                         step.peer);
    case StepKind::get:
      return fmt::format("get {} = {} of rank {}", text(made, step.writes[0]), text(made, step.reads[0]),
                         step.peer);
    case StepKind::group:
    case StepKind::carry: {
      if (!step.name.empty()) return "end of " + step.name;
      std::string list;
      for (const ConcreteTransfer& one : step.transfers)
        list += fmt::format("{}{} {} {} rank {} via {}", list.empty() ? "" : ", ",
                            one.is_send ? "send" : "recv", text(made, one.box), one.is_send ? "to" : "from",
                            one.peer, mover_names[size_t(one.mover)]);
      return fmt::format("{} {{ {} }}", name, list);
    }
    case StepKind::wait:
      return fmt::format("wait for step {}", step.token);
    case StepKind::mark:
      return "mark " + (step.token ? fmt::to_string(step.token) : in_quotes(step.name));
    case StepKind::fill:
      return fmt::format("fill {} = {}", text(made, step.writes[0]), step.value);
    default:
      return fmt::format("{}{}{} {} = {}", name, step.name.empty() ? "" : " ", step.name,
                         boxes(made, step.writes), boxes(made, step.reads));
  }
}

}  // namespace

std::string dump_layout(std::string_view name, const Schedule& schedule) {
  return Dump(schedule).whole(name, schedule.layout, false);
}

std::string dump(std::string_view name, const Schedule& schedule) {
  return Dump(schedule).whole(name, schedule.body, true);
}

std::string dump(std::string_view name, const Concrete& made, uint32_t rank) {
  std::string out = fmt::format("{} on rank {} of {}\n", name, rank, made.ranks);
  const std::vector<Step>& steps = made.steps[rank];
  for (size_t k = 0; k < steps.size(); ++k)
    out += fmt::format("  {:>4} {:<8} {}\n", k, made.lanes[steps[k].lane],
                       steps[k].kind == StepKind::barrier ? "barrier" : what(made, steps[k]));
  return out;
}

}  // namespace chorale::host
