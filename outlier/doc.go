// Package outlier keeps apart the results of the instances behind one name, and
// leaves a bad one out for a while.
//
// A breaker judges a service as a whole: one bad instance of four makes a quarter of
// the calls fail, which is too little to open it and too much to live with. So each
// instance is judged by its own results. One that fails is ejected: it gets no calls
// for a time that grows with each ejection in a row, then one trial call, which brings
// it back or ejects it again. Never are all ejected.
//
// A [Config] is the Outlier of an Upstream with Instances, in packages grpcmw and
// httpmw, whose Failover does the rest.
package outlier
