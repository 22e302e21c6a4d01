#include "connection.hpp"

#include <fcntl.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>
#include <utility>

namespace chorale::bootstrap {

system::ClosedInForks keep_from_others(int file) {
  ::fcntl(file, F_SETFD, FD_CLOEXEC);
  return system::ClosedInForks(file);
}

Connection::Connection(tcp::socket socket, std::unique_ptr<Greeting> greeting)
    : socket_(std::move(socket)),
      closed_in_forks_(keep_from_others(socket_.native_handle())),
      greeting_(std::move(greeting)) {}

void Connection::listen(Listener listener) {
  listener_ = std::move(listener);
  send_bytes(greeting_->begin());
  read();
}

void Connection::read() {
  socket_.async_read_some(boost::asio::buffer(part_),
                          [self = shared_from_this()](const boost::system::error_code& error, size_t bytes) {
                            if (!self->socket_.is_open()) return;  // this end has closed the connection
                            if (error) return self->drop();
                            self->take({self->part_, bytes});
                            if (self->socket_.is_open()) self->read();
                          });
}

void Connection::take(std::string_view bytes) {
  if (greeting_->state() == Greeting::State::open) greet(bytes);
  // Ignore data of an end that was refused.
  if (!socket_.is_open() || greeting_->state() != Greeting::State::done) return;
  reader_.add(bytes);
  while (socket_.is_open()) {
    const std::optional<Frame> frame = reader_.next();
    if (!frame) break;
    const auto call = listener_.frame;  // the listener may be destroyed during the call
    call(*frame);
  }
  if (socket_.is_open() && reader_.broken()) drop();
}

void Connection::greet(std::string_view& bytes) {
  send_bytes(greeting_->take(bytes));
  if (greeting_->state() == Greeting::State::done) {
    const auto call = listener_.met;
    call();
  } else if (greeting_->state() == Greeting::State::failed) {
    const auto call = listener_.refused;
    call(*greeting_);
    // If a reason is being sent, the other end reads it and closes. If this end closed now, the reason might
    // be lost.
    if (socket_.is_open() && !sending()) drop();
  }
}

void Connection::send_bytes(std::string bytes) {
  if (!socket_.is_open() || bytes.empty()) return;
  outgoing_.push_back(std::move(bytes));
  if (outgoing_.size() == 1) write();
}

void Connection::write() {
  boost::asio::async_write(
      socket_, boost::asio::buffer(outgoing_.front()),
      [self = shared_from_this()](const boost::system::error_code& error, size_t) {
        // The read also fails then, and reports the broken connection.
        if (error) return self->outgoing_.clear();
        self->outgoing_.pop_front();
        if (!self->outgoing_.empty()) return self->write();
        boost::system::error_code ignored;
        if (self->greeting_->state() == Greeting::State::failed && self->socket_.is_open())
          self->socket_.shutdown(tcp::socket::shutdown_send, ignored);
      });
}

void Connection::drop() {
  const std::function<void()> call = listener_.closed;  // close() destroys the listener
  close();
  call();
}

void Connection::close() {
  boost::system::error_code ignored;
  closed_in_forks_ = {};
  socket_.close(ignored);
  listener_ = {};  // the listener may own this connection
}

system::Descriptor Connection::release() {
  boost::system::error_code error;
  system::Descriptor file(socket_.release(error));
  listener_ = {};
  if (error) return system::Descriptor();
  file.close_in_forks();
  closed_in_forks_ = {};
  return file;
}

std::string Connection::peer() const {
  boost::system::error_code error;
  const tcp::endpoint from = socket_.remote_endpoint(error);
  return error ? "somewhere" : from.address().to_string();
}

}  // namespace chorale::bootstrap
