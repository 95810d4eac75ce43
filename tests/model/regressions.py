"""Programs that were once got wrong, and programs worth keeping whatever the seed is."""

from __future__ import annotations

from tests.model.program import (
    Act,
    Child,
    Commit,
    Compensate,
    Event,
    Fan,
    Hang,
    Limit,
    Note,
    Program,
    Raise,
    Revert,
    Try,
    Unit,
)

REGRESSIONS: dict[str, Program] = {
    "cancel with the completion": Program(
        (Act(), Act("args"), Note()), events=(Event("cancel", at=1, together=True),)
    ),
    "cancel with the committer's completion": Program(
        (Act("ship"), Commit()), events=(Event("cancel", at=1, together=True),)
    ),
    "cancel with the completion of an explicit undo": Program(
        (Act(), Revert()), events=(Event("cancel", at=1, together=True),)
    ),
    "completion order": Program(
        (Fan("gather", ((Act(),), (Act("args"),), (Act("nothing"),))), Raise()), choices=(1, 1, 0)
    ),
    "a failed undo after an explicit one": Program(
        (Act(undo="fails"), Try((Revert(),)), Act("context"), Try((Compensate(),)), Raise())
    ),
    "a join of a group of failures": Program(
        (Fan("join", ((Fan("group", ((Act(), Raise()), (Note(),))),), (Act("args"),))),)
    ),
    "a cancelled update whose undo fails": Program(
        (Act(), Hang()),
        handlers=((Act("args", undo="fails"), Hang()),),
        events=(Event("update", at=0), Event("cancel", at=3)),
        choices=(0,),
    ),
    "a committer in flight as a branch ends": Program(
        (Fan("join", ((Act("ship"),), (Commit(),))), Raise()), choices=(1, 0)
    ),
    "a cancel while a failed undo is tried again": Program(
        (Act(undo="flaky"), Raise()), events=(Event("cancel", at=1, together=True),)
    ),
    "a committer that completes while a handler is undone": Program(
        (Act("nothing"), Act(), Commit(), Raise()),
        handlers=((Act("ship", undo="fails"), Act("bill"), Raise("Limit")),),
        events=(Event("update", at=1),),
        choices=(0, 0, 0, 1, 0),
    ),
    "a handler goes on while a cancelled child settles": Program(
        (Act("nothing"), Child((Note(), Hang()))),
        handlers=((Act("final"), Act()),),
        events=(Event("update", at=1), Event("cancel", at=2, together=True)),
    ),
    "an update before anything else": Program(
        (Hang(),), handlers=((Act("ship"), Compensate()),), events=(Event("update", at=0),)
    ),
    "a time limit around an action": Program(
        (Limit((Act(on_cancel="ignore"),)),), events=(Event("expire", at=0),)
    ),
    "a cancel while a run unwinds whose error is a cancel of its own": Program(
        (Limit((Act(), Fan("group", ((Note(),), (Act(),))))),),
        events=(Event("cancel", at=3, together=True), Event("expire", at=1, together=True)),
    ),
    "a run that ends uncommitted with a handler at work": Program(
        (Act("ship"),),
        handlers=((Act("unknown_context", on_cancel="obey_after"),),),
        events=(Event("update"),),
        choices=(1,),
    ),
    "a handler that is refused a call while the run ends": Program(
        (Unit((Act(), Commit(), Fan("gather", ((Compensate(),), (Act(),))))),),
        handlers=((Act(), Act(), Act()),),
        events=(Event("signal", at=1, together=True),),
    ),
    "an unwind that begins first and is planned last": Program(
        (Hang(),),
        handlers=((Fan("gather", ((Commit(),), (Act(), Raise()))),), (Act(), Raise())),
        events=(Event("update"), Event("update", at=2, which=1), Event("cancel", at=6)),
        choices=(1,),
    ),
    "a declared child that fails because its own action was declined": Program(
        (
            Try(
                (Child((Act(), Act(outcome="declined")), declared=True),),
                handler=(Act(),),
            ),
        )
    ),
}
