#include "connection.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>
#include <string_view>
#include <utility>

namespace chorale::net {
namespace {

// A frame: this, eight hexadecimal digits for the length of what follows them, a letter, the text. It
// is the same for all versions of Chorale, so that they can tell each other that they differ.
constexpr std::string_view magic = "chorale/";
constexpr size_t length_digits = 8, head = magic.size() + length_digits;
constexpr size_t longest = size_t(1) << 20;

/// What a foreign program has sent, fit for a message.
std::string printable(std::string_view bytes) {
  std::string text;
  for (const char letter : bytes.substr(0, 32)) text += letter >= ' ' && letter <= '~' ? letter : '.';
  return text;
}

}  // namespace

std::string encode(const Frame& frame) {
  return fmt::format("{}{:08x}{}{}", magic, frame.text.size() + 1, char(frame.kind), frame.text);
}

world::ClosedInForks keep_from_others(int file) {
  ::fcntl(file, F_SETFD, FD_CLOEXEC);
  return world::ClosedInForks(file);
}

Connection::Connection(tcp::socket socket)
    : socket_(std::move(socket)), closed_in_forks_(keep_from_others(socket_.native_handle())) {}

void Connection::listen(Listener listener) {
  listener_ = std::move(listener);
  read();
}

void Connection::read() {
  socket_.async_read_some(boost::asio::buffer(part_),
                          [self = shared_from_this()](const boost::system::error_code& error, size_t bytes) {
                            if (!self->socket_.is_open()) return;  // ours is the last word
                            if (error) return self->drop(self->listener_.closed);
                            self->incoming_.append(self->part_, bytes);
                            self->take_frames();
                            if (self->socket_.is_open()) self->read();
                          });
}

void Connection::take_frames() {
  const auto foreign = [&] { drop([call = listener_.foreign, seen = printable(incoming_)] { call(seen); }); };
  while (socket_.is_open() && !incoming_.empty()) {
    // Foreign from its first byte: it may never send as many as a frame has.
    if (incoming_.compare(0, magic.size(), magic, 0, std::min(incoming_.size(), magic.size())) != 0)
      return foreign();
    if (incoming_.size() < head) return;
    size_t length = 0;
    for (const char digit : incoming_.substr(magic.size(), length_digits)) {
      const size_t value = std::string_view("0123456789abcdef").find(digit);
      if (value > 15) return foreign();
      length = length * 16 + value;
    }
    if (length == 0 || length > longest) return foreign();
    if (incoming_.size() < head + length) return;
    const Frame frame{FrameKind(incoming_[head]), incoming_.substr(head + 1, length - 1)};
    incoming_.erase(0, head + length);
    const auto call = listener_.frame;  // the listener may go while it runs
    call(frame);
  }
}

void Connection::send(const Frame& frame) {
  if (!socket_.is_open()) return;
  outgoing_.push_back(encode(frame));
  if (outgoing_.size() == 1) write();
}

void Connection::write() {
  boost::asio::async_write(socket_, boost::asio::buffer(outgoing_.front()),
                           [self = shared_from_this()](const boost::system::error_code& error, size_t) {
                             // That it is broken the reader finds, too, and says.
                             if (error) return self->outgoing_.clear();
                             self->outgoing_.pop_front();
                             if (!self->outgoing_.empty()) self->write();
                           });
}

void Connection::drop(const std::function<void()>& last_call) {
  const std::function<void()> call = last_call;  // the listener goes with close()
  close();
  call();
}

void Connection::close() {
  boost::system::error_code ignored;
  closed_in_forks_ = {};
  socket_.close(ignored);
  listener_ = {};  // it may hold this connection
}

world::Descriptor Connection::release() {
  boost::system::error_code error;
  world::Descriptor file(socket_.release(error));
  listener_ = {};
  if (error) return world::Descriptor();
  file.close_in_forks();
  closed_in_forks_ = {};
  return file;
}

std::string Connection::peer() const {
  boost::system::error_code error;
  const tcp::endpoint from = socket_.remote_endpoint(error);
  return error ? "somewhere" : fmt::format("{}:{}", from.address().to_string(), from.port());
}

}  // namespace chorale::net
