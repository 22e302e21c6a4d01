#pragma once

#include <string_view>

#include "arguments.hpp"
#include "functions.hpp"

namespace chorale::nccl {

/// Says who answered a call.
enum class Answer { served, refused, fallback };

/// Counts a call. The first call of the process prints the version and what the environment says.
void count(Function function, Answer answer);

/// Counts a call that was counted as `from` as `to` instead.
void change_count(Function function, Answer from, Answer to);

/// Ends a call that goes to no library. If `null` or `checked` decide it, that is the result. Otherwise the
/// call is refused with ncclInvalidUsage. The sentence names the fallback if `may_fall_back`. Every refusal
/// sets the last error, and the error of the group that the call belongs to.
ncclResult_t refuse(Function function, const Checked& null, const Checked& checked, bool may_fall_back);

/// Ends a call that fails because of its arguments or of when it is made. It sets the last error to the name
/// of the function and `sentence`.
ncclResult_t fail(Function function, ncclResult_t result, std::string_view sentence);

}  // namespace chorale::nccl
