; Generated from pool.c by clang 22: python -m functrans.lowering.llvm.c.generate

@table = internal constant [2 x ptr] [ptr @functrans.run_chunks, ptr @functrans.role], align 16

define ptr @functrans.pool() {
entry:
  ret ptr @table
}

define i64 @functrans.role() {
entry:
  ret i64 0
}

define i64 @functrans.run_chunks(ptr %function, ptr %frame, i64 %chunks, i64 %team, i1 %probe, ptr %poll, ptr %get, ptr %set) {
entry:
  %last = alloca i64, align 8
  store i64 0, ptr %last, align 8
  %call = call fastcc i64 @alone(ptr %function, ptr %frame, i64 %chunks, ptr %poll, ptr %last)
  ret i64 %call
}

define internal fastcc i64 @alone(ptr %function, ptr %frame, i64 %chunks, ptr %poll, ptr %last) {
entry:
  br label %do.body

do.body:
  %total.addr.0 = phi i64 [ 0, %entry ], [ %spec.select, %do.body ]
  %chunk.0 = phi i64 [ 0, %entry ], [ %inc, %do.body ]
  %call = call i64 %function(ptr %frame, i64 %chunk.0, i64 0)
  %cmp.i = icmp samesign ugt i64 %total.addr.0, 4611686018427387903
  %cmp1.i = icmp sgt i64 %call, 4611686018427387903
  %or.i = select i1 %cmp1.i, i64 0, i64 %total.addr.0
  %cond.i = or i64 %or.i, %call
  %retval.0.i = select i1 %cmp.i, i64 %total.addr.0, i64 %cond.i
  %call2 = call i1 %poll(ptr %last)
  %or = or i64 %retval.0.i, -9223372036854775808
  %spec.select = select i1 %call2, i64 %or, i64 %retval.0.i
  %cmp = icmp sgt i64 %spec.select, -1
  %inc = add nuw nsw i64 %chunk.0, 1
  %cmp3 = icmp slt i64 %inc, %chunks
  %or.cond = select i1 %cmp, i1 %cmp3, i1 false
  br i1 %or.cond, label %do.body, label %do.end

do.end:
  ret i64 %spec.select
}
