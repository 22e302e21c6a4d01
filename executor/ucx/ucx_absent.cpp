// This UcxLink is for builds without UCX.

#include "chorale/error.hpp"
#include "ucx_link.hpp"

namespace chorale::ucx {

struct UcxLink::State {};

std::string UcxLink::missing() {
  return "this library was built without UCX: install libucx-dev and build again, with CHORALE_UCX on";
}

UcxLink::UcxLink(int, Events) { throw RunError(RunError::Reason::other, missing()); }
UcxLink::~UcxLink() = default;

// These functions are never called, because the constructor throws.
std::vector<std::byte> UcxLink::address() const { return {}; }
void UcxLink::connect(int, std::span<const std::byte>) {}
void UcxLink::send(int, std::span<const std::byte>, Payload) {}
bool UcxLink::progress() { return false; }
size_t UcxLink::unsent_bytes() const { return 0; }
bool UcxLink::flushed(Flush&) { return true; }
void UcxLink::sleep(std::chrono::milliseconds) {}
void UcxLink::wake() {}

}  // namespace chorale::ucx
