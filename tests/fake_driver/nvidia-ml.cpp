// This fake libnvidia-ml.so.1 has what tools/nvml.hpp declares. FAKE_NVML=0: it does not start. FAKE_POOR=1:
// it has no links. FAKE_GPUS: the number of GPUs. FAKE_BRIDGED=1: links lead to the neighbours instead of a
// switch.

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int not_found = 6, driver_not_loaded = 9;

bool is(const char* name, char value) {
  const char* const text = std::getenv(name);
  return text && text[0] == value;
}

int known_devices[16];

/// Has the layout of nvmlPciInfo_t.
struct PciInfo {
  char legacy[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char id[32];
};

int gpus() {
  const char* const text = std::getenv("FAKE_GPUS");
  return text ? std::atoi(text) : 1;
}

int set_bus(PciInfo* info, int bus) {
  std::snprintf(info->id, sizeof info->id, "00000000:%02X:00.0", unsigned(bus));
  return 0;
}

}  // namespace

extern "C" {

int nvmlInit_v2() { return is("FAKE_NVML", '0') ? driver_not_loaded : 0; }
int nvmlShutdown() { return 0; }

int nvmlSystemGetDriverVersion(char* text, unsigned bytes) {
  std::snprintf(text, bytes, "600.1");
  return 0;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char* bus, void** device) {
  if (std::strncmp(bus, "0000:1", 6) != 0) return not_found;
  *device = &known_devices[0];
  return 0;
}

int nvmlDeviceGetMemoryInfo(void*, unsigned long long* total_free_used) {
  total_free_used[0] = (is("FAKE_POOR", '1') ? 64ull : 143771ull) << 20;
  total_free_used[1] = total_free_used[0] / 2;
  total_free_used[2] = total_free_used[0] - total_free_used[1];
  return 0;
}

int nvmlDeviceGetNvLinkState(void*, unsigned link, int* active) {
  if (link >= 18 || is("FAKE_POOR", '1')) return not_found;
  *active = link != 7;  // one is down
  return 0;
}

int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = unsigned(gpus());
  return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = &known_devices[index];
  return 0;
}

int nvmlDeviceGetPciInfo_v3(void* device, PciInfo* info) {
  return set_bus(info, 0x10 + int(static_cast<int*>(device) - known_devices));
}

int nvmlDeviceGetMaxPcieLinkGeneration(void*, unsigned* generation) {
  *generation = 5;
  return 0;
}

int nvmlDeviceGetMaxPcieLinkWidth(void*, unsigned* lanes) {
  *lanes = 16;
  return 0;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(void* device, unsigned link, PciInfo* info) {
  if (!is("FAKE_BRIDGED", '1')) return set_bus(info, 0xc0 + int(link % 4));
  const int gpu = int(static_cast<int*>(device) - known_devices), step = link % 2 ? 1 : gpus() - 1;
  return set_bus(info, 0x10 + (gpu + step) % gpus());
}

struct FieldValue {
  unsigned field, scope;
  long long timestamp, latency;
  unsigned type, error;
  unsigned long long number;
};

int nvmlDeviceGetFieldValues(void*, int, FieldValue* values) {
  if (values->field != 90) return not_found;
  values->error = 0;
  values->number = 26562;
  return 0;
}
}
