"""One per server process: routes and headers, sockets, PyTorch and training processes kept ready."""
