/// \file
/// Makes processes that change the same file take turns.
#pragma once

#include <string>

namespace chorale::tools {

/// Locks the folder of `file` while it exists, and waits in the constructor for processes that hold the lock.
/// It leaves no file behind. If the folder does not exist, or its file system has no locks, it does nothing.
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
