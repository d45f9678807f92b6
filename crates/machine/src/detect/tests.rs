//! Detection on canned files.
