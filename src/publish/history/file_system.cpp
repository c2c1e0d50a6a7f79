#include "publish/history/file_system.h"

#include <fmt/format.h>
#include <sys/stat.h>

namespace tidemark {
namespace {

// Whether it may be opened: SQLite would block on a FIFO.
bool is_file_or_missing(const char* path) {
  struct stat facts {};
  return ::lstat(path, &facts) != 0 || S_ISREG(facts.st_mode);
}

}  // namespace

DatabaseFiles::DatabaseFiles()
    : sqlite3_vfs(*sqlite3_vfs_find(nullptr)), name_(fmt::format("tidemark-{}", static_cast<const void*>(this))) {
  zName = name_.c_str();
  xOpen = open_file;
  xDelete = delete_file;
  sqlite3_vfs_register(this, 0);
}

DatabaseFiles::~DatabaseFiles() {
  sqlite3_vfs_unregister(this);
}

int DatabaseFiles::open_file(sqlite3_vfs* self, const char* path, sqlite3_file* file, int flags, int* used_flags) {
  auto& files = *static_cast<DatabaseFiles*>(self);
  file->pMethods = nullptr;  // until it is open
  if ((flags & SQLITE_OPEN_MAIN_DB) != 0) files.path_ = path;
  // A file without a path is temporary.
  if (path != nullptr && !is_file_or_missing(path)) {
    files.refused_ = fmt::format("{} is not a regular file: remove it", path);
    return SQLITE_CANTOPEN;
  }
  return sqlite3_vfs_find(nullptr)->xOpen(self, path, file, flags, used_flags);
}

int DatabaseFiles::delete_file(sqlite3_vfs* self, const char* path, int sync_folder) {
  auto& files = *static_cast<DatabaseFiles*>(self);
  if (path != files.path_ + "-journal" && path != files.path_ + "-wal") {
    files.refused_ = fmt::format("{}-journal names {} as a file that is to be deleted; it was not", files.path_, path);
    return SQLITE_PERM;
  }
  return sqlite3_vfs_find(nullptr)->xDelete(self, path, sync_folder);
}

}  // namespace tidemark
