/// \file
/// Processes that change one file take turns.
#pragma once

#include <string>

namespace chorale::tools {

/// While it lives, no other process has one of the folder of `file`; it leaves no file behind. Waits for
/// those that have. Where there is no such folder, or its file system has no locks, it does nothing.
class FolderLock {
 public:
  explicit FolderLock(const std::string& file);
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  ~FolderLock();

 private:
  int folder_;
};

}  // namespace chorale::tools
