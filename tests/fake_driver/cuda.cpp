// This fake libcuda.so.1 has what tools/gpus.cpp uses, with the GPUs that the environment defines:
//   FAKE_GPUS=n      how many; 0: the driver starts without a GPU, as the real one does
//   FAKE_APART=a,b   these two do not reach each other
//   FAKE_POOR=1      old GPUs: no IPC, no handles, 8 SMs, 64 MiB

#include <cstddef>
#include <cstdio>
#include <cstdlib>

namespace {

int number(const char* name) {
  const char* const text = std::getenv(name);
  return text ? std::atoi(text) : 0;
}

constexpr int no_device = 100, invalid_value = 1;

}  // namespace

extern "C" {

int cuInit(unsigned) { return number("FAKE_GPUS") ? 0 : no_device; }

int cuDriverGetVersion(int* version) {
  *version = 13020;
  return 0;
}

int cuDeviceGetCount(int* count) {
  *count = number("FAKE_GPUS");
  return 0;
}

int cuDeviceGet(int* device, int ordinal) {
  *device = 100 + ordinal;  // not the ordinal, so that confusing the two shows
  return ordinal < number("FAKE_GPUS") ? 0 : invalid_value;
}

int cuDeviceGetName(char* name, int bytes, int device) {
  std::snprintf(name, size_t(bytes), "Fake GPU %c", 'A' + device - 100);
  return 0;
}

int cuDeviceTotalMem_v2(size_t* bytes, int) {
  *bytes = size_t(number("FAKE_POOR") ? 64 : 143771) << 20;
  return 0;
}

int cuDeviceGetAttribute(int* value, int attribute, int device) {
  if (device < 100) return invalid_value;
  const bool poor = number("FAKE_POOR");
  switch (attribute) {
    case 16:  // SMs
      *value = poor ? 8 : 132;
      return 0;
    case 20:  // compute mode
      *value = 0;
      return 0;
    case 39:  // threads an SM
      *value = 2048;
      return 0;
    case 41:  // unified addresses
      *value = 1;
      return 0;
    case 75:
      *value = 9;
      return 0;
    case 76:
      *value = 0;
      return 0;
    case 102:  // virtual memory, its handles, IPC, multicast
    case 103:
    case 125:
    case 132:
      *value = !poor;
      return 0;
    case 128:  // fabric handles
      *value = 0;
      return 0;
  }
  return invalid_value;
}

int cuDeviceGetPCIBusId(char* text, int bytes, int device) {
  std::snprintf(text, size_t(bytes), "0000:%02X:00.0", 0x10 + device - 100);
  return 0;
}

int cuDeviceCanAccessPeer(int* can, int device, int peer) {
  int first = -1, second = -1;
  if (const char* const apart = std::getenv("FAKE_APART")) std::sscanf(apart, "%d,%d", &first, &second);
  const int from = device - 100, to = peer - 100;
  *can = !((from == first && to == second) || (from == second && to == first));
  return 0;
}

int cuGetErrorString(int error, const char** text) {
  *text = error == no_device ? "no CUDA-capable device is detected" : "invalid argument";
  return 0;
}
}
