//! What lies between the nodes of a cluster. Plans do not depend on it: only the simulator looks at it.

use crate::error::Problem;
use serde::Serialize;

/// The network between the memories of a cluster's nodes, each of which has one port to it, whose bandwidth is its part of
/// the edge's.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Network {
    /// Which switches there are, and how they are connected.
    pub shape: Shape,
    /// What software takes for one message, nanoseconds, during which the node's port stands still; finite, at least 0.
    pub message_ns: f64,
    /// Where these constants come from.
    pub source: Option<String>,
}

/// Switches and the links between them. Nodes are numbered, and neighbours have numbers that follow each other. Each link has
/// its bandwidth each way at once; finite and above 0.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Shape {
    /// One switch that every node is connected to: ports are the only limit.
    Crossbar,
    /// Leaf switches, and above them switches that connect each leaf with each other one; what leaves a leaf is spread
    /// evenly over its links upwards.
    FatTree {
        /// Nodes of a leaf, at least 1; the last leaf may have fewer.
        leaf: usize,
        /// Links of a leaf upwards, at least 1. Fewer than it has nodes are an oversubscribed tree.
        up: usize,
        /// Of a link between switches.
        link_bytes_per_second: f64,
    },
    /// A ring along each dimension through every node; messages go along the first dimension first, the shorter way, and
    /// half each way where both are as long.
    Torus {
        /// Nodes along each dimension; the last varies fastest in the numbers.
        sizes: Vec<usize>,
        /// Of a link between neighbours.
        link_bytes_per_second: f64,
    },
    /// Groups of routers, in which each is connected with each other one; every pair of groups is connected by as many links
    /// as any other. Messages go by the link between the two groups, spread evenly where there are several.
    Dragonfly {
        /// Nodes of a router, at least 1.
        router: usize,
        /// Routers of a group, at least 1.
        group: usize,
        /// Links of a router to other groups.
        global: usize,
        /// Of a link between routers.
        link_bytes_per_second: f64,
    },
}

impl Shape {
    /// The name in machine files.
    pub fn name(&self) -> &'static str {
        match self {
            Shape::Crossbar => "crossbar",
            Shape::FatTree { .. } => "fat tree",
            Shape::Torus { .. } => "torus",
            Shape::Dragonfly { .. } => "dragonfly",
        }
    }

    /// Of a link between switches; `None` where ports are all there is.
    pub fn link_bytes_per_second(&self) -> Option<f64> {
        match *self {
            Shape::Crossbar => None,
            Shape::FatTree { link_bytes_per_second, .. }
            | Shape::Torus { link_bytes_per_second, .. }
            | Shape::Dragonfly { link_bytes_per_second, .. } => Some(link_bytes_per_second),
        }
    }

    /// Whether so many nodes can be connected in this way; on error, the key that is wrong.
    pub(crate) fn fits(&self, nodes: usize) -> Result<(), (&'static str, Problem)> {
        let misfit = |key, found: String, write: String| Err((key, Problem::NetworkMisfit { nodes, found, write }));
        let zero = |key| Err((key, Problem::OutOfRange { found: "0".into(), expected: "at least 1" }));
        match self {
            Shape::Crossbar => Ok(()),
            Shape::FatTree { leaf: 0, .. } => zero("network.leaf"),
            Shape::FatTree { up: 0, .. } => zero("network.up"),
            Shape::FatTree { .. } => Ok(()),
            Shape::Torus { sizes, .. } => {
                let product = sizes.iter().try_fold(1usize, |product, size| product.checked_mul(*size));
                if product == Some(nodes) && !sizes.is_empty() {
                    return Ok(());
                }
                let found = match product {
                    Some(product) => format!("a torus of sizes {sizes:?} has {product}"),
                    None => format!("a torus of sizes {sizes:?} has more than can be counted"),
                };
                misfit("network.sizes", found, format!("sizes = {:?}, or other sizes with this product", even(nodes)))
            }
            Shape::Dragonfly { router: 0, .. } => zero("network.router"),
            Shape::Dragonfly { group: 0, .. } => zero("network.group"),
            &Shape::Dragonfly { router, group, global, .. } => {
                let of_group = router.saturating_mul(group);
                if !nodes.is_multiple_of(of_group) {
                    let found = format!("a group of {group} routers of {router} nodes has {of_group}");
                    return misfit("network.group", found, "router and group whose product divides them".into());
                }
                let others = nodes / of_group - 1;
                let links = group.saturating_mul(global);
                if others > 0 && (links == 0 || !links.is_multiple_of(others)) {
                    let found = format!("the {links} links of a group do not reach its {others} neighbours evenly");
                    let write = format!("global so that group x global is a multiple of {others}");
                    return misfit("network.global", found, write);
                }
                Ok(())
            }
        }
    }
}

/// Sizes of three dimensions, as equal as factors let them be, whose product is given.
fn even(product: usize) -> [usize; 3] {
    // The largest divisor that is not above a root: few steps, since counts are bounded.
    let below = |n: usize, root: u32| {
        let most = (1..=n).take_while(|d| d.checked_pow(root).is_some_and(|power| power <= n));
        most.filter(|d| n.is_multiple_of(*d)).last().unwrap_or(1)
    };
    let first = below(product, 3);
    let second = below(product / first, 2);
    [product / first / second, second, first]
}
