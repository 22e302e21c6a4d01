/// \file
/// Makes processes that change one file take turns.
#pragma once

#include <string>

namespace chorale::tools {

/// While it lives, no other process has a lock of the folder of `file`. The constructor waits for processes
/// that have one. It leaves no file behind. If there is no such folder, or its file system has no locks, it
/// does nothing.
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
