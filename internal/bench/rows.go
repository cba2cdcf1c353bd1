package main

// rows is all that is measured, in the order of the report.
func rows() []row {
	var all []row
	for _, some := range []func() []row{breakerRows, memoryRows, layerRows, stackRows, httpRows, grpcRows, telemetryRows} {
		all = append(all, some()...)
	}
	return all
}
