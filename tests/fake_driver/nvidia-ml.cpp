// This fake libnvidia-ml.so.1 has what tools/gpus.cpp uses. FAKE_NVML=0: it does not start. FAKE_POOR=1: it
// has no links.

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int not_found = 6, driver_not_loaded = 9;

bool is(const char* name, char value) {
  const char* const text = std::getenv(name);
  return text && text[0] == value;
}

int known_device;

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
  *device = &known_device;
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
}
