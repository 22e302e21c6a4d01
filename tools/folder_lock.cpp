#include "tools/folder_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

namespace chorale::tools {

FolderLock::FolderLock(const std::string& file) {
  std::error_code none;  // an error means that the folder does not exist; writing then reports it
  const std::filesystem::path folder =
      std::filesystem::weakly_canonical(std::filesystem::absolute(file, none), none).parent_path();
  folder_ = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  while (folder_ >= 0 && ::flock(folder_, LOCK_EX) != 0 && errno == EINTR) {
  }
}

FolderLock::~FolderLock() {
  if (folder_ >= 0) ::close(folder_);
}

}  // namespace chorale::tools
