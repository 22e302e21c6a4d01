#include "outcome.hpp"

#include <exception>
#include <new>

#include "chorale/error.hpp"

namespace chorale::nccl {
namespace {

ncclResult_t result_of(RunError::Reason reason) {
  switch (reason) {
    case RunError::Reason::timed_out:
    case RunError::Reason::aborted:
    case RunError::Reason::deadlock:
    case RunError::Reason::peer_lost:
      return ncclRemoteError;
    case RunError::Reason::mismatch:
      return ncclInvalidUsage;
    case RunError::Reason::resources:
    case RunError::Reason::other:
      return ncclSystemError;
  }
  return ncclInternalError;
}

}  // namespace

Outcome outcome_of_exception() {
  try {
    throw;
  } catch (const CallError& error) {
    return {error.result, error.what()};
  } catch (const RunError& error) {
    return {result_of(error.reason), error.what()};
  } catch (const UsageError& error) {
    return {ncclInvalidUsage, error.what()};
  } catch (const std::bad_alloc&) {
    return {ncclSystemError, "the host is out of memory"};
  } catch (const std::exception& error) {
    return {ncclInternalError, error.what()};
  } catch (...) {
    return {ncclInternalError, "an exception that is no std::exception"};
  }
}

}  // namespace chorale::nccl
