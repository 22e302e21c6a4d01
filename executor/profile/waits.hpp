/// \file
/// Waits finds which span released another one, and when.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "chorale/profile.hpp"
#include "chorale/releases.hpp"
#include "launch_spans.hpp"

namespace chorale::profile_of {

/// Tells what a span waited for.
struct Release {
  enum class Kind : uint8_t {
    none,     ///< it did not wait
    by_span,  ///< it waited for `by`, until `at_ns`
    by_peers,
    unknown,
  };
  Kind kind = Kind::none;
  SpanPlace by;
  /// Holds the latest time at which its wait can have ended. If this is after the span began, it really
  /// waited.
  uint64_t at_ns = 0;
  std::vector<uint32_t> peers;
  std::optional<SourceLine> peers_line;
};

class Waits {
 public:
  Waits(const Plan& plan, const LaunchSpans& spans, const AwaitedByOp& awaited, Clocks clocks)
      : plan_(plan), spans_(spans), awaited_(awaited), clocks_(clocks) {}

  Release of(const SpanPlace&) const;

 private:
  bool consider(const TraceSpan& waiting, const OpPlace& by, Release&) const;

  const Plan& plan_;
  const LaunchSpans& spans_;
  const AwaitedByOp& awaited_;
  const Clocks clocks_;
};

}  // namespace chorale::profile_of
