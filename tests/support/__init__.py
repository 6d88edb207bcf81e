"""What tests share: servers, libraries, upstreams, processes to kill, faults."""
