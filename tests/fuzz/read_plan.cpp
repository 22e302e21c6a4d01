// This libFuzzer target reads arbitrary bytes as JSON or CBOR. Reading must end in a plan or in a PlanError.
// Checking a plan that was read, and its certificate, must end. Text that we write must read back to the same
// text, and a proved plan must compile without findings. Bytes that begin with < are an algorithm of MSCCL,
// whose import must end in findings or in a plan that the checks accept.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <string_view>

#include "chorale/compile.hpp"
#include "chorale/json.hpp"
#include "chorale/msccl_xml.hpp"
#include "chorale/proof.hpp"

namespace {

void fail(const char* what, const std::string& before, const std::string& after) {
  std::fprintf(stderr, "%s:\n%s\n%s\n", what, before.c_str(), after.c_str());
  std::abort();
}

std::string cbor(const chorale::Plan& plan) {
  std::ostringstream bytes;
  chorale::write_cbor(plan, bytes);
  return bytes.str();
}

std::string round_trip(const chorale::Plan& plan) {
  std::string written = chorale::write(plan);
  const std::string again = chorale::write(chorale::read(written));
  if (written != again) fail("written and read back differ", written, again);
  // Numbers keep their digits.
  const chorale::Plan from_cbor = chorale::read(cbor(plan));
  if (chorale::write(from_cbor) != written)
    fail("written as CBOR and read back differ", written, chorale::write(from_cbor));
  return written;
}

/// Returns whether the plan cannot have instances, because it has too many barriers or chunks, or operands
/// that share a part of their chunks. Any other finding about a proved plan is an error in the compiler.
bool is_of_the_plan(const chorale::Diagnostic& finding) {
  return finding.check == "replicate" || finding.help.starts_with("each instance takes an equal share");
}

void import_algorithm(std::string_view xml) {
  chorale::Diagnostics findings;
  chorale::Plan plan = chorale::import_msccl_xml(xml, "fuzz.xml", findings);
  if (!findings.empty()) {
    chorale::render(plan, findings);
    if (plan.ranks()) fail("findings leave a plan", std::string(xml), chorale::write(plan));
    return;
  }
  const std::string written = round_trip(plan);
  const chorale::Diagnostics bugs = chorale::check(plan);
  // There may not be enough memory for all buffers.
  if (!bugs.empty() && bugs[0].check != "bounds")
    fail("an imported plan is none", std::string(xml) + written, chorale::render(plan, bugs));
  chorale::render(plan, chorale::compile(plan));
  round_trip(plan);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size && data[0] == '<') {
    import_algorithm({reinterpret_cast<const char*>(data), size});
    return 0;
  }
  chorale::Plan plan;
  try {
    plan = chorale::read({reinterpret_cast<const char*>(data), size});
  } catch (const chorale::PlanError&) {
    return 0;
  }
  const std::string written = round_trip(plan);
  for (uint32_t rank = 0; rank < plan.ranks() && rank < 3; ++rank)
    chorale::read({reinterpret_cast<const char*>(data), size}, rank);
  const chorale::Diagnostics findings = chorale::check(plan);
  chorale::render(plan, findings);
  if (!plan.extension.verified.empty()) chorale::refute_certificate(plan);
  if (!findings.empty()) return 0;
  const bool proved = chorale::prove(plan).empty();
  const chorale::Diagnostics bugs = chorale::compile(plan, {.instances = uint32_t(1 + size % 3)});
  if (proved && !std::all_of(bugs.begin(), bugs.end(), is_of_the_plan))
    fail("a rewrite broke the plan", written, chorale::render(plan, bugs));
  round_trip(plan);
  return 0;
}
