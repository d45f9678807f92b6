//! The tree of memories: machine files, detection, probing.
