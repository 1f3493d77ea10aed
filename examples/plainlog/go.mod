module example.com/plainlog

go 1.26.0

require github.com/gobag/gobag v0.0.0

replace github.com/gobag/gobag => ../..
