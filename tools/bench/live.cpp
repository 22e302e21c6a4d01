#include "tools/bench/live.hpp"

#include <algorithm>
#include <iostream>

#include "tools/command.hpp"

namespace chorale::tools {

LiveResults::LiveResults(const BenchRequest& request, const BenchReports& reports, Facts facts,
                         std::vector<File> files, bool lines)
    : request_(request),
      reports_(reports),
      facts_(std::move(facts)),
      files_(std::move(files)),
      lines_(lines),
      results_(gather(request, reports, facts_)) {
  // Subjects that were refused before the run are not reported again.
  for (const Result& result : results_.all) seen_.push_back(result.done);
  seen_before_ = size_t(std::count(seen_.begin(), seen_.end(), true));
}

void LiveResults::look() noexcept {
  try {
    take();
    show_progress();
  } catch (const Failure& failure) {
    if (!failure_) failure_ = failure;
  } catch (const std::exception& error) {
    if (!failure_) failure_ = Failure(Exit::run_failed, error.what());
  }
}

void LiveResults::take() {
  if (!reports_.any_news(seen_)) return;
  results_ = gather(request_, reports_, facts_);
  for (size_t at = 0; at < seen_.size(); ++at) {
    const Result& result = results_.all[at];
    if (seen_[at] || !result.done) continue;
    seen_[at] = true;
    if (!lines_ || !says_something(results_, result)) continue;
    progress_.clear();
    std::cerr << text_line(results_, result) << std::endl;
  }
  write_files();
}

void LiveResults::show_progress() {
  const size_t seen = size_t(std::count(seen_.begin(), seen_.end(), true));
  const BenchReports::Common& common = reports_.common();
  progress_(request_.subjects[common.subject].name + " at " + format_bytes(request_.sizes[common.size]),
            double(seen - seen_before_) / double(std::max<size_t>(seen_.size() - seen_before_, 1)));
}

void LiveResults::write_files() {
  const bool wrong = std::any_of(results_.all.begin(), results_.all.end(), [this](const Result& result) {
    return results_.subject(result).is_plan() && !result.what.empty();
  });
  for (const File& file : files_) {
    if (!wrong || !file.if_right) write_output(file.path, file.write(results_));
  }
}

const BenchResults& LiveResults::end(bool complete) {
  take();
  progress_.clear();
  results_.complete = complete;
  if (failure_) throw *failure_;
  write_files();
  return results_;
}

}  // namespace chorale::tools
