// This file holds the rows of ops.def as data.

#include <array>

#include "chorale/plan.hpp"
#include "roles.hpp"

namespace chorale {
namespace {

// Each row's fields end with an extra one that no consumer sees. Otherwise rows without fields would be
// arrays of length zero.
constexpr bool one = false;
constexpr bool many = true;
constexpr Field row_end{Role::Loop, {}, false, false};

#define CHORALE_SRC(role, name, arity) Field{Role::role, #name, false, arity},
#define CHORALE_DST(role, name, arity) Field{Role::role, #name, true, arity},
#define CHORALE_ATTR(role) Field{Role::role, {}, false, false},
#define CHORALE_OP(name, mnemonic, summary, fields) constexpr Field fields_of_##name[] = {fields row_end};
#include "chorale/ops.def"

constexpr OpInfo table[] = {
#define CHORALE_OP(name, mnemonic, summary, fields) \
  {#name, mnemonic, summary, {fields_of_##name, std::size(fields_of_##name) - 1}},
#include "chorale/ops.def"
};

constexpr Shape shape_of(const OpInfo& row) {
  Shape shape;
  size_t sources = 0, dests = 0;
  for (const Field& field : row.fields) {
    shape.roles |= Shape::bit(field.role);
    if (is_operand(field.role)) (field.in_dst ? dests : sources) += 1;
  }
  // ops.def lists sources first, then destinations, then attributes.
  shape.sources = row.fields.subspan(0, sources);
  shape.dests = row.fields.subspan(sources, dests);
  return shape;
}

constexpr std::array<Shape, opcode_count> make_shapes() {
  std::array<Shape, opcode_count> shapes;
  for (size_t code = 0; code < opcode_count; ++code) shapes[code] = shape_of(table[code]);
  return shapes;
}

constexpr std::array<Shape, opcode_count> all_shapes = make_shapes();

// Checks what shape_of() and Shape::field rely on: the order of the fields, and that `many` stands only at
// the end of a list.
constexpr bool well_formed() {
  for (const OpInfo& row : table) {
    int part = 0;
    const Field* last = nullptr;
    for (const Field& field : row.fields) {
      const int here = is_operand(field.role) ? (field.in_dst ? 1 : 0) : 2;
      if (here < part) return false;
      if (here == part && here < 2 && last && last->many) return false;
      part = here;
      last = &field;
    }
  }
  return true;
}
static_assert(well_formed(), "a row of ops.def has its fields in a wrong order");

}  // namespace

const OpInfo& info(Opcode code) { return table[size_t(code)]; }

std::span<const OpInfo> op_table() { return table; }

constinit const Shape* const shapes = all_shapes.data();

int find_opcode(std::string_view word) {
  for (size_t code = 0; code < opcode_count; ++code) {
    if (table[code].mnemonic == word) return int(code);
  }
  for (size_t code = 0; code < opcode_count; ++code) {
    if (table[code].name == word) return int(code);
  }
  return -1;
}

}  // namespace chorale
