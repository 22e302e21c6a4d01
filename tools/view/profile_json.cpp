#include "tools/view/profile_json.hpp"

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace chorale::tools {
namespace {

using Json = nlohmann::ordered_json;

/// A page with a longer critical path does not draw it, because every frame draws all of it.
constexpr size_t most_stretches = 5000;

std::string line_of(const ProfilePlace& place) {
  return place.line.line ? place.line.file + ":" + std::to_string(place.line.line) : "";
}

std::string name_of(const ProfilePlace& place) {
  switch (place.kind) {
    case ProfilePlace::Kind::rank_begins:
      return "(before the rank began)";
    case ProfilePlace::Kind::block_begins:
      return "(before the block began)";
    case ProfilePlace::Kind::operation:
      break;
  }
  return std::string(place.name);
}

const char* kind_of(TimeKind kind) {
  switch (kind) {
    case TimeKind::work:
      return "work";
    case TimeKind::packets:
      return "packets";
    case TimeKind::turns:
      return "turns";
    case TimeKind::waits:
      break;
  }
  return "waits";
}

Json compared(const std::vector<ComparedLine>& lines) {
  Json list = Json::array();
  for (const ComparedLine& line : lines) {
    list.push_back({{"name", name_of(line.place)},
                    {"line", line_of(line.place)},
                    {"kind", kind_of(line.kind)},
                    {"measured", line.measured.median_ns},
                    {"predicted", line.predicted.median_ns},
                    {"blocks", line.blocks}});
  }
  return list;
}

}  // namespace

Json profile_json(const Profile& profile) {
  Json lines = Json::array(), path = Json::array();
  for (const ProfileLine& line : profile.lines) {
    lines.push_back({{"name", name_of(line.place)},
                     {"line", line_of(line.place)},
                     {"path", line.path_ns},
                     {"spans", line.spans},
                     {"total", line.total_ns},
                     {"longest", line.longest_ns},
                     {"rank", line.rank},
                     {"block", line.block}});
  }
  const std::vector<ProfileStretch>& stretches = profile.path;
  for (const ProfileStretch& stretch :
       stretches.size() > most_stretches ? std::vector<ProfileStretch>() : stretches) {
    path.push_back({{"name", name_of(stretch.place)},
                    {"line", line_of(stretch.place)},
                    {"rank", stretch.rank},
                    {"block", stretch.block},
                    {"from", stretch.from_ns},
                    {"to", stretch.to_ns}});
  }
  return {{"launch", profile.launch},
          {"ns", profile.launch_ns},
          {"lines", std::move(lines)},
          {"path", std::move(path)}};
}

Json comparison_json(const Comparison& comparison) {
  return {{"launch", comparison.launch},
          {"measured", comparison.measured_ns},
          {"predicted", comparison.predicted_ns},
          {"lines", compared(comparison.lines)},
          {"onlyMeasured", compared(comparison.only_measured)},
          {"onlyPredicted", compared(comparison.only_predicted)}};
}

}  // namespace chorale::tools
