// This application uses the address sanitizer, but links a library without it. An exception on a fiber's
// stack must not be reported as a memory error.

#include <chorale/world.hpp>
#include <cstdio>
#include <stdexcept>
#include <string>

int main() {
  std::string told;
  try {
    chorale::run_local(2,
                       [](chorale::World& world) {
                         world.barrier();
                         if (world.rank() == 1) throw std::runtime_error("mine");
                         world.barrier();
                       },
                       {.seed = 5});
  } catch (const std::exception& error) {
    told = error.what();
  }
  if (told.find("mine") == std::string::npos) {
    std::printf("expected what rank 1 threw, but was told '%s'\n", told.c_str());
    return 1;
  }
  std::puts("ok");
}
