//! Interprets plans over stores and teams.
