//! The command `plan`.

use crate::application::Request;
use crate::args::PlanArgs;
use crate::report::Prepared;
use crate::{json, report};
use multigrain::rooms::plan::check::{check, edge_rules};
use multigrain::{Options, Runtime};
use multigrain_console::{Bar, Failure, print};

/// Plans an application and reports; starts nothing.
pub(crate) fn plan(args: &PlanArgs, request: &Request) -> Result<(), Failure> {
    let planned_ranks = args.ranks.map(|ranks| ranks as usize).filter(|&ranks| ranks > 1);
    let runtime = Runtime::new(Options { planned_ranks, only_plans: true, ..args.common.options()? })?;
    let app = request.prepare(&runtime)?;
    let bar = Bar::new(&app.job.app, !args.common.json);
    bar.prepare("planning");
    let planned = runtime.plan(&app.job);
    bar.clear();
    let planned = planned?;
    let verified = match args.verify {
        true => {
            let rules = edge_rules(&planned.machine);
            let proof = check(&planned.plan, &rules).map_err(|why| match &planned.refused {
                Some(refused) if rules.iter().any(|rules| rules.strict) => Failure::Request(refused.clone()),
                // Every other plan is made to pass: one that does not is a fault of the planner.
                _ => Failure::Run(format!("internal error: the plan is wrong: {why}")),
            });
            Some(proof?)
        }
        false => None,
    };
    let prepared = Prepared { app: &app, planned: &planned, verified };
    print(&match args.common.json {
        true => json::line(&json::plan(&prepared)),
        false => report::plan(&prepared),
    })
}
