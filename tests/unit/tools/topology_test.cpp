// These tests read the topology of machines from made-up copies of /sys.

#include "tools/doctor/topology.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/new_folder.hpp"

namespace chorale::tools {
namespace {

namespace fs = std::filesystem;

class Sysfs : public testing::Test {
 protected:
  ~Sysfs() override { fs::remove_all(root_); }

  static void write(const fs::path& file, const std::string& text) { std::ofstream(file) << text << '\n'; }

  /// Adds a device below others, and makes those.
  /// \param path  such as "pci0000:00/0000:00:01.0/0000:01:00.0"
  fs::path add(const std::string& path, const std::string& type, const std::string& vendor = "0x10de",
               int numa = 0, const std::string& speed = "32.0 GT/s PCIe", int lanes = 16) {
    const fs::path folder = root_ / "devices" / path;
    fs::create_directories(folder);
    write(folder / "class", type);
    write(folder / "vendor", vendor);
    write(folder / "numa_node", std::to_string(numa));
    write(folder / "max_link_speed", speed);
    write(folder / "current_link_speed", "2.5 GT/s PCIe");
    write(folder / "current_link_width", std::to_string(lanes));
    fs::create_directories(root_ / "bus/pci/devices");
    fs::create_directory_symlink(folder, root_ / "bus/pci/devices" / folder.filename());
    return folder;
  }
  void add_nic(const std::string& path, const std::string& name, const std::string& rate, int numa = 0) {
    const fs::path nic = add(path, "0x020700", "0x15b3", numa) / "infiniband" / name;
    fs::create_directories(nic / "ports/1");
    write(nic / "ports/1/rate", rate);
    fs::create_directory_symlink("../..", nic / "device");
    fs::create_directories(root_ / "class/infiniband");
    fs::create_directory_symlink(nic, root_ / "class/infiniband" / name);
  }

  /// Returns the links as "gpu0 - cpu0 50.41, ...".
  std::string links(const std::optional<std::vector<ManagedGpu>>& managed = std::nullopt) {
    const Topology topology = topology_of(root_.string(), managed);
    // The printed text can be read.
    if (!topology.gpus().empty()) {
      EXPECT_EQ(parse_topology(topology_text(topology), "t.json"), topology);
    }
    std::string text;
    for (size_t at = 0; at < topology.links.size(); at += 2) {
      const TopologyLink& link = topology.links[at];
      text += (text.empty() ? "" : ", ") + topology.nodes[link.from].name + " - " +
              topology.nodes[link.to].name + " " + std::to_string(int(link.gb_s));
    }
    return text;
  }

  fs::path root_ = fs::canonical(test::new_folder("sysfs"));
};

const std::string root = "pci0000:00/", other_root = "pci0000:80/";
constexpr const char* gpu = "0x030200";
constexpr const char* bridge = "0x060400";

TEST_F(Sysfs, HasNoGpu) {
  add(root + "0000:00:01.0", bridge, "0x8086");
  add_nic(root + "0000:00:01.0/0000:01:00.0", "mlx5_0", "400 Gb/sec (4X NDR)");
  EXPECT_TRUE(topology_of(root_.string(), std::nullopt).gpus().empty());
  fs::remove_all(root_ / "bus");
  EXPECT_TRUE(topology_of(root_.string(), std::nullopt).gpus().empty());
}

TEST_F(Sysfs, HasGpusBelowTheProcessor) {
  add(root + "0000:00:01.0", bridge, "0x8086");
  add(root + "0000:00:01.0/0000:01:00.0", gpu);
  add(root + "0000:00:01.0/0000:01:00.1", "0x040300");  // its sound
  add(root + "0000:00:02.0", bridge, "0x8086", 0, "16.0 GT/s PCIe");
  add(root + "0000:00:02.0/0000:02:00.0", "0x030000");
  add(root + "0000:00:03.0", "0x030000", "0x1a03");  // of another vendor
  EXPECT_EQ(links(), "gpu0 - cpu0 50, gpu1 - cpu0 25");
  const Topology topology = topology_of(root_.string(), std::nullopt);
  EXPECT_EQ(topology.nodes[0], (TopologyNode{TopologyNode::Kind::gpu, "gpu0", "host0", "", ""}));
}

/// Two GPUs and a NIC are below one PCIe switch of the second processor, and a GPU is at the first one.
TEST_F(Sysfs, HasSwitchesNicsAndProcessors) {
  const std::string up = other_root + "0000:80:01.0/0000:81:00.0";
  add(root + "0000:00:01.0", bridge, "0x8086");
  add(root + "0000:00:01.0/0000:01:00.0", gpu);
  add(other_root + "0000:80:01.0", bridge, "0x8086", 1);
  add(up, bridge, "0x1000", 1, "16.0 GT/s PCIe");
  for (int at = 0; at < 3; ++at) {
    const std::string down = up + "/0000:82:0" + std::to_string(at) + ".0";
    add(down, bridge, "0x1000", 1);
    const std::string end = down + "/0000:8" + std::to_string(3 + at) + ":00.0";
    if (at < 2) {
      add(end, gpu, "0x10de", 1, "32.0 GT/s PCIe", at == 0 ? 16 : 8);
    } else {
      add_nic(end, "mlx5_0", "200 Gb/sec (4X HDR)", 1);
    }
  }
  EXPECT_EQ(
      links(),
      "gpu0 - cpu0 50, 0000:81:00.0 - cpu1 25, gpu1 - 0000:81:00.0 50, gpu2 - 0000:81:00.0 25, mlx5_0 - "
      "0000:81:00.0 25, cpu0 - cpu1 16");
  // NVML lists the GPUs that this process may use, and their NVLinks.
  std::vector<ManagedGpu> managed{{"0000:84:00.0", 0, 20, {"0000:01:00.0", "0000:01:00.0"}},
                                  {"0000:01:00.0", 10, 20, {"0000:84:00.0", "0000:84:00.0", "0000:f0:00.0"}}};
  EXPECT_EQ(links(managed),
            "gpu1 - cpu0 10, 0000:81:00.0 - cpu1 25, gpu0 - 0000:81:00.0 25, mlx5_0 - 0000:81:00.0 25, cpu0 "
            "- cpu1 16, "
            "gpu0 - gpu1 40, gpu1 - nvswitch 20");
}

TEST_F(Sysfs, LacksWhatNvmlLists) {
  EXPECT_EQ(links(std::vector<ManagedGpu>{{"0000:84:00.0", 30, 0, {}}, {"0000:85:00.0", 0, 0, {"", ""}}}),
            "gpu0 - cpu0 30, gpu1 - cpu0 16");
}

}  // namespace
}  // namespace chorale::tools
