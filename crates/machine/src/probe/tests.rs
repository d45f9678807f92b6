//! Probing within limits so small that only the code is tried, not the computer.
