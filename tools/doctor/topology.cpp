// PCIe devices are a tree, of which sysfs has a folder for each device. We keep the part that leads to GPUs
// and NICs. A bridge with one device below it becomes part of the link to that device, so what is left are
// switches. The tree ends at the processor of the devices.

#include "tools/doctor/topology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <map>
#include <system_error>

#include "chorale/read_file.hpp"
#include "tools/command.hpp"
#include "tools/nvml.hpp"

namespace chorale::tools {
namespace {

namespace fs = std::filesystem;
using Kind = TopologyNode::Kind;

// An H200 has 18 links of 26.562 GB/s, and a copy engine writes 384 GB/s to a peer (docs/simulation.md). The
// rest are headers.
constexpr double h200_nvlink_gb_s = 26.562, nvlink_part = 384 / (18 * h200_nvlink_gb_s);
// A packet of 128 to 256 bytes has about 24 bytes of headers, and some packets are for flow control.
constexpr double pcie_part = 0.8;
// Nothing on the machine says these: assumed.
constexpr double pcie_ns = 150, processor_gb_s = 16, processor_ns = 500;

std::string lower(std::string text) {
  for (char& letter : text) letter = char(std::tolower(static_cast<unsigned char>(letter)));
  return text;
}

/// Returns "0000:3b:00.0" for NVML's "00000000:3B:00.0", as sysfs writes it.
std::string bus_of(const Nvml::PciInfo& info) {
  const std::string id = lower(std::string(info.id, strnlen(info.id, sizeof info.id)));
  const size_t colon = id.find(':');
  return colon == 8 && id.starts_with("0000") ? id.substr(4) : id;
}

/// Returns the rate of a lane in GB/s. Up to 5 GT/s ten bits carry eight, and above nearly all carry data.
double lane_gb_s(double gt_s) { return pcie_part * gt_s / 8 * (gt_s <= 5 ? 0.8 : 128.0 / 130); }

ManagedGpu managed_gpu(const Nvml& nvml, void* device) {
  const Nvml::Functions& call = nvml.call();
  ManagedGpu gpu;
  Nvml::PciInfo info{};
  if (call.pci(device, &info) == 0) gpu.bus = bus_of(info);
  unsigned generation = 0, lanes = 0;
  if (call.generation(device, &generation) == 0 && call.width(device, &lanes) == 0 && generation > 0) {
    constexpr double gt_s[] = {2.5, 5, 8, 16, 32, 64};
    gpu.pcie_gb_s = lane_gb_s(gt_s[std::min<size_t>(generation, std::size(gt_s)) - 1]) * lanes;
  }
  constexpr unsigned common_speed_mb_s = 90;  // NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON
  Nvml::FieldValue speed{};
  speed.field = common_speed_mb_s;
  const bool known = call.fields(device, 1, &speed) == 0 && speed.error == 0 && speed.number > 0;
  gpu.nvlink_gb_s = nvlink_part * (known ? speed.number / 1e3 : h200_nvlink_gb_s);
  for (const unsigned link : nvml.active_links(device)) {
    Nvml::PciInfo remote{};
    gpu.nvlinks.push_back(call.link_remote(device, link, &remote) == 0 ? bus_of(remote) : "");
  }
  return gpu;
}

/// Returns the beginning of a small file; "" if it cannot be read.
std::string text_in(const fs::path& file) {
  try {
    std::string text = read_plain_file(file.string(), 1 << 16);
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.pop_back();
    return text;
  } catch (const std::runtime_error&) {
    return "";
  }
}

/// Returns the number at the beginning of a small file.
std::optional<double> number_in(const fs::path& file) {
  const std::string text = text_in(file);
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} ? std::optional(number) : std::nullopt;
}

/// Returns the rate of a device's link; 0 if it is not known. An idle GPU lowers the speed of its link, so
/// the largest one counts. The width is lower only if something is wrong.
double link_gb_s(const fs::path& device) {
  std::optional<double> speed = number_in(device / "max_link_speed"),
                        lanes = number_in(device / "current_link_width");
  if (!speed) speed = number_in(device / "current_link_speed");
  return speed && lanes ? lane_gb_s(*speed) * *lanes : 0;
}

/// Returns the smaller of two rates, of which 0 is not known.
double slower(double one, double other) { return one == 0 ? other : other == 0 ? one : std::min(one, other); }

bool is_bus_id(const std::string& name) {
  return name.size() >= 12 && name[4] == ':' && name.find('.') != name.npos;
}

struct Leaf {
  std::string path;  ///< canonical
  std::string name;
  Kind kind;
  double gb_s;  ///< the most that it takes; 0: not known
};

constexpr const char* host = "host0";

class Tree {
 public:
  Tree(const std::string& sysfs, const std::optional<std::vector<ManagedGpu>>& managed)
      : sysfs_(sysfs), managed_(managed) {}

  Topology build() {
    result_.name = "this machine";
    find_gpus();
    if (leaves_.empty()) return std::move(result_);
    for (const Leaf& leaf : leaves_) result_.nodes.push_back({leaf.kind, leaf.name, host, "", ""});
    // NICs come after the GPUs, whose numbers in the result are their ranks.
    const size_t gpus = leaves_.size();
    if (std::any_of(leaves_.begin(), leaves_.end(), [](const Leaf& leaf) { return !leaf.path.empty(); }))
      find_nics();
    for (size_t at = gpus; at < leaves_.size(); ++at)
      result_.nodes.push_back({Kind::nic, leaves_[at].name, host, "", ""});
    connect_by_pcie();
    if (managed_) connect_by_nvlink();
    return std::move(result_);
  }

 private:
  std::string canonical(const fs::path& path) const {
    std::error_code error;
    const fs::path found = fs::canonical(path, error);
    return error ? "" : found.string();
  }

  void find_gpus() {
    std::vector<std::string> buses;
    std::error_code ignored;
    if (managed_) {
      for (const ManagedGpu& gpu : *managed_) buses.push_back(gpu.bus);
    } else {
      for (const auto& entry : fs::directory_iterator(sysfs_ / "bus/pci/devices", ignored)) {
        const std::string type = text_in(entry.path() / "class");
        if (text_in(entry.path() / "vendor") == "0x10de" &&
            (type.starts_with("0x0300") || type.starts_with("0x0302")))
          buses.push_back(entry.path().filename().string());
      }
      std::sort(buses.begin(), buses.end());
    }
    for (size_t gpu = 0; gpu < buses.size(); ++gpu) {
      leaves_.push_back({canonical(sysfs_ / "bus/pci/devices" / buses[gpu]), fmt::format("gpu{}", gpu),
                         Kind::gpu, managed_ ? (*managed_)[gpu].pcie_gb_s : 0});
    }
  }

  void find_nics() {
    std::vector<fs::path> found;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(sysfs_ / "class/infiniband", ignored))
      found.push_back(entry.path());
    std::sort(found.begin(), found.end());
    for (const fs::path& nic : found) {
      const std::string path = canonical(nic / "device");
      const bool known =
          std::any_of(leaves_.begin(), leaves_.end(), [&](const Leaf& leaf) { return leaf.path == path; });
      if (path.empty() || known) continue;
      double gbit_s = 0;
      for (const auto& port : fs::directory_iterator(nic / "ports", ignored))
        gbit_s += number_in(port.path() / "rate").value_or(0);
      leaves_.push_back({path, nic.filename().string(), Kind::nic, gbit_s / 8});
    }
  }

  /// Describes a device or a processor on the way to a leaf.
  struct Branch {
    std::string parent;  ///< "": it is a processor
    size_t children = 0;
    double gb_s = 0;  ///< of the link to the parent; 0: not known
    uint32_t node = ~uint32_t{0};
  };

  void connect_by_pcie() {
    for (size_t leaf = 0; leaf < leaves_.size(); ++leaf) add_branches(leaf);
    std::vector<uint32_t> processors;
    for (auto& [path, branch] : branches_)
      if (branch.parent.empty()) processors.push_back(branch.node = add_switch(path));
    for (auto& [path, branch] : branches_)
      if (branch.node == ~uint32_t{0} && branch.children > 1)
        branch.node = add_switch(fs::path(path).filename().string());
    for (const auto& [path, branch] : branches_) {
      if (branch.node == ~uint32_t{0} || branch.parent.empty()) continue;
      double gb_s = branch.gb_s;
      std::string above = branch.parent;
      for (; branches_.at(above).node == ~uint32_t{0}; above = branches_.at(above).parent)
        gb_s = slower(gb_s, branches_.at(above).gb_s);
      link(branch.node, branches_.at(above).node, gb_s == 0 ? processor_gb_s : gb_s, pcie_ns);
    }
    for (size_t one = 0; one < processors.size(); ++one)
      for (size_t other = one + 1; other < processors.size(); ++other)
        link(processors[one], processors[other], processor_gb_s, processor_ns);
  }

  void add_branches(size_t leaf) {
    const Leaf& of = leaves_[leaf];
    const int numa = of.path.empty() ? 0 : int(number_in(fs::path(of.path) / "numa_node").value_or(0));
    const std::string processor = fmt::format("cpu{}", std::max(numa, 0));
    std::string below = of.path.empty() ? of.name : of.path;
    Branch& first = branches_[below];
    first.node = uint32_t(leaf);
    first.gb_s = of.path.empty() ? of.gb_s : slower(of.gb_s, link_gb_s(of.path));
    while (true) {
      Branch& branch = branches_[below];
      const fs::path up = fs::path(below).parent_path();
      const bool top = of.path.empty() || !is_bus_id(up.filename().string());
      branch.parent = top ? processor : up.string();
      const auto [above, added] = branches_.try_emplace(branch.parent);
      ++above->second.children;
      if (!added || top) return;
      above->second.gb_s = link_gb_s(up);
      below = branch.parent;
    }
  }

  void connect_by_nvlink() {
    std::map<std::string, uint32_t> by_bus;
    for (uint32_t gpu = 0; gpu < managed_->size(); ++gpu) by_bus[(*managed_)[gpu].bus] = gpu;
    uint32_t nvswitch = ~uint32_t{0};
    for (uint32_t gpu = 0; gpu < managed_->size(); ++gpu) {
      const ManagedGpu& of = (*managed_)[gpu];
      std::map<uint32_t, int> links;  // by GPU
      int to_switch = 0;
      for (const std::string& remote : of.nvlinks) {
        const auto found = by_bus.find(remote);
        found == by_bus.end() ? ++to_switch : ++links[found->second];
      }
      for (const auto& [peer, count] : links)
        if (peer != gpu && of.nvlink_gb_s > 0)
          result_.links.push_back({gpu, peer, rounded(count * of.nvlink_gb_s), 0});
      if (to_switch == 0 || of.nvlink_gb_s == 0) continue;
      if (nvswitch == ~uint32_t{0}) nvswitch = add_switch("nvswitch");
      link(gpu, nvswitch, to_switch * of.nvlink_gb_s, 0);
    }
  }

  static double rounded(double gb_s) { return std::max(std::round(gb_s * 100) / 100, 0.01); }

  uint32_t add_switch(const std::string& name) {
    result_.nodes.push_back({Kind::switch_, name, host, "", ""});
    return uint32_t(result_.nodes.size() - 1);
  }
  /// Adds a link, rounded to 10 MB/s.
  void link(uint32_t one, uint32_t other, double gb_s, double latency_ns) {
    gb_s = rounded(gb_s);
    result_.links.push_back({one, other, gb_s, latency_ns});
    result_.links.push_back({other, one, gb_s, latency_ns});
  }

  const fs::path sysfs_;
  const std::optional<std::vector<ManagedGpu>>& managed_;
  std::vector<Leaf> leaves_;
  std::map<std::string, Branch> branches_;  // by path, or the processor's name
  Topology result_;
};

}  // namespace

std::optional<std::vector<ManagedGpu>> managed_gpus() {
  const Nvml nvml;
  if (!nvml.problem().empty()) return std::nullopt;
  std::vector<ManagedGpu> gpus;
  unsigned count = 0;
  nvml.call().count(&count);
  for (unsigned index = 0; index < count; ++index) {
    void* device = nullptr;
    if (nvml.call().device(index, &device) == 0) gpus.push_back(managed_gpu(nvml, device));
  }
  return gpus;
}

Topology topology_of(const std::string& sysfs, const std::optional<std::vector<ManagedGpu>>& managed) {
  return Tree(sysfs, managed).build();
}

void print_topology() {
  const auto managed = managed_gpus();
  const Topology topology = topology_of("/sys", managed);
  if (topology.gpus().empty()) {
    throw Failure(Exit::run_failed,
                  managed
                      ? "there is no GPU here: the management library (NVML) lists none"
                      : "there is no GPU here: the management library (NVML) does not start, and /sys has no "
                        "GPU of NVIDIA",
                  "docs/topologies.md says how to write the topology of another machine");
  }
  std::cout << topology_text(topology);
}

}  // namespace chorale::tools
