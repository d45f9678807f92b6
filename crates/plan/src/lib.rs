//! Program x machine -> plan: passes, fit proof, checker, cost.
