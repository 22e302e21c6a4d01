#pragma once
/// \file
/// The op table generates one struct per row here, which run() takes. Its members are the operands and
/// attributes by their roles. They are views of an image::Record.

#include <cstdint>

#include "chorale/plan.hpp"
#include "image.hpp"

namespace chorale {

namespace op {

enum Arity : bool { one, many };

/// Views the operands of one field.
template <Role R>
struct Places {
  const image::Place* first = nullptr;
  uint32_t n = 0;

  const image::Place& operator[](uint32_t position) const { return first[position]; }
};

/// Lists positions in this rank's channels, semaphores or barriers.
struct Ids {
  const uint32_t* first = nullptr;
  uint32_t n = 0;
};

/// Says which share a block has in an operation that a group of blocks runs together.
struct Slice {
  uint32_t index = 0, size = 0;
};

/// Names a barrier of this rank, and how many blocks take part.
struct Barrier {
  uint32_t id = 0, participants = 0;
};

/// Describes a pipeline: its turns, and the number of records after it that are its body.
struct Turns {
  uint64_t n = 0, bytes = 0;
  uint32_t body = 0;
};

/// Hands out a record's operands field by field. A `many` field is the last of its list.
struct Cursor {
  const image::Record* record = nullptr;
  const image::Place* source = nullptr;
  const image::Place* dest = nullptr;
  const uint32_t* first_id = nullptr;

  Cursor(const image::Image& image, const image::Record& of)
      : record(&of),
        source(image.places + of.first_place),
        dest(source + of.sources),
        first_id(image.ids + of.first_id),
        sources_left_(of.sources),
        dests_left_(of.dests) {}

  template <Role R>
  Places<R> take_source(Arity arity) {
    const uint32_t n = arity == one ? 1 : sources_left_;
    const Places<R> taken{source, n};
    source += n;
    sources_left_ -= n;
    return taken;
  }

  template <Role R>
  Places<R> take_dest(Arity arity) {
    const uint32_t n = arity == one ? 1 : dests_left_;
    const Places<R> taken{dest, n};
    dest += n;
    dests_left_ -= n;
    return taken;
  }

  Ids ids() const { return {first_id, record->ids}; }

 private:
  uint32_t sources_left_, dests_left_;
};

// Each macro declares the member for one attribute.
#define CHORALE_ATTR_Via ChannelType via = cursor.record->via;
#define CHORALE_ATTR_Channels Ids channels = cursor.ids();
#define CHORALE_ATTR_PortChannels Ids port_channels = cursor.ids();
#define CHORALE_ATTR_Post Ids post = cursor.ids();
#define CHORALE_ATTR_PostRelaxed Ids post = cursor.ids();
#define CHORALE_ATTR_Await Ids await = cursor.ids();
#define CHORALE_ATTR_AwaitRelaxed Ids await = cursor.ids();
#define CHORALE_ATTR_Drain Ids drain = cursor.ids();
#define CHORALE_ATTR_Acquire Ids acquire = cursor.ids();
#define CHORALE_ATTR_Release Ids release = cursor.ids();
#define CHORALE_ATTR_Arrive Barrier arrive{cursor.first_id[0], cursor.record->participants};
#define CHORALE_ATTR_Reduce ReduceOp reduce_op = cursor.record->reduce_op;
#define CHORALE_ATTR_Sliced Slice slice{cursor.record->group_index, cursor.record->group_size};
#define CHORALE_ATTR_Loop Turns loop{cursor.record->turns, cursor.record->turn_bytes, cursor.record->body};

#define CHORALE_OP(name, mnemonic, summary, fields) \
  struct name { \
    Cursor cursor; \
    fields \
  };
#define CHORALE_SRC(role, name, arity) Places<Role::role> name = cursor.take_source<Role::role>(arity);
#define CHORALE_DST(role, name, arity) Places<Role::role> name = cursor.take_dest<Role::role>(arity);
#define CHORALE_ATTR(role) CHORALE_ATTR_##role
#include "chorale/ops.def"

#undef CHORALE_ATTR_Via
#undef CHORALE_ATTR_Channels
#undef CHORALE_ATTR_PortChannels
#undef CHORALE_ATTR_Post
#undef CHORALE_ATTR_PostRelaxed
#undef CHORALE_ATTR_Await
#undef CHORALE_ATTR_AwaitRelaxed
#undef CHORALE_ATTR_Drain
#undef CHORALE_ATTR_Acquire
#undef CHORALE_ATTR_Release
#undef CHORALE_ATTR_Arrive
#undef CHORALE_ATTR_Reduce
#undef CHORALE_ATTR_Sliced
#undef CHORALE_ATTR_Loop

}  // namespace op
}  // namespace chorale
