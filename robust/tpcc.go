package robust

import "strings"

// TPCC returns the TPC-C benchmark as the paper models it (7.1): five programs that unfold into 13.
func TPCC() *Workload {
	return &Workload{
		Name:     "TPC-C",
		Schema:   &Schema{Relations: tpccRelations(), ForeignKeys: tpccForeignKeys()},
		Programs: []*Program{tpccNewOrder(), tpccPayment(), tpccOrderStatus(), tpccDelivery(), tpccStockLevel()},
	}
}

func tpccRelations() []*Relation {
	relation := func(name, key, others string) *Relation {
		return &Relation{Name: name, Key: strings.Fields(key), Attributes: strings.Fields(key + " " + others)}
	}
	return []*Relation{
		relation("Warehouse", "w_id", "w_name w_street_1 w_street_2 w_city w_state w_zip w_tax w_ytd"),
		relation("District", "d_w_id d_id",
			"d_name d_street_1 d_street_2 d_city d_state d_zip d_tax d_ytd d_next_o_id"),
		relation("Customer", "c_w_id c_d_id c_id",
			"c_first c_middle c_last c_street_1 c_street_2 c_city c_state c_zip c_phone c_since "+
				"c_credit c_credit_lim c_discount c_balance c_ytd_payment c_payment_cnt c_delivery_cnt c_data"),
		relation("History", "", "h_c_id h_c_d_id h_c_w_id h_d_id h_w_id h_date h_amount h_data"),
		relation("NewOrder", "no_w_id no_d_id no_o_id", ""),
		relation("Orders", "o_w_id o_d_id o_id", "o_c_id o_entry_d o_carrier_id o_ol_cnt o_all_local"),
		relation("OrderLine", "ol_w_id ol_d_id ol_o_id ol_number",
			"ol_i_id ol_supply_w_id ol_delivery_d ol_quantity ol_amount ol_dist_info"),
		relation("Item", "i_id", "i_im_id i_name i_price i_data"),
		relation("Stock", "s_w_id s_i_id",
			"s_quantity s_dist_01 s_dist_02 s_dist_03 s_dist_04 s_dist_05 s_dist_06 s_dist_07 s_dist_08 s_dist_09 "+
				"s_dist_10 s_ytd s_order_cnt s_remote_cnt s_data"),
	}
}

func tpccForeignKeys() []*ForeignKey {
	foreignKey := func(domain, columns, to, references string) *ForeignKey {
		return &ForeignKey{Name: domain + to, Domain: domain, Columns: strings.Fields(columns), Range: to,
			References: strings.Fields(references)}
	}
	return []*ForeignKey{
		foreignKey("District", "d_w_id", "Warehouse", "w_id"),
		foreignKey("Customer", "c_w_id c_d_id", "District", "d_w_id d_id"),
		foreignKey("History", "h_c_w_id h_c_d_id h_c_id", "Customer", "c_w_id c_d_id c_id"),
		foreignKey("Orders", "o_w_id o_d_id o_c_id", "Customer", "c_w_id c_d_id c_id"),
		foreignKey("NewOrder", "no_w_id no_d_id no_o_id", "Orders", "o_w_id o_d_id o_id"),
		foreignKey("OrderLine", "ol_w_id ol_d_id ol_o_id", "Orders", "o_w_id o_d_id o_id"),
		foreignKey("OrderLine", "ol_supply_w_id ol_i_id", "Stock", "s_w_id s_i_id"),
		foreignKey("Stock", "s_w_id", "Warehouse", "w_id"),
		foreignKey("Stock", "s_i_id", "Item", "i_id"),
	}
}

// attributes returns the set of the names in a text.
func attributes(names string) Set { return Of(strings.Fields(names)...) }

// keyed completes a key-based statement or an insertion.
func keyed(q Statement, key, sql string) *Statement {
	q.Key, q.SQL = strings.Fields(key), sql
	return &q
}

func tpccNewOrder() *Program {
	customer := keyed(Statement{Type: KeySel, Relation: "Customer", Read: attributes("c_discount c_last c_credit")},
		":w :d :c",
		"SELECT c_discount, c_last, c_credit FROM Customer WHERE c_w_id = :w AND c_d_id = :d AND c_id = :c")
	warehouse := keyed(Statement{Type: KeySel, Relation: "Warehouse", Read: Of("w_tax")}, ":w",
		"SELECT w_tax FROM Warehouse WHERE w_id = :w")
	district := keyed(Statement{Type: KeyUpd, Relation: "District", Read: attributes("d_next_o_id d_tax"),
		Write: Of("d_next_o_id")}, ":w :d",
		"UPDATE District SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = :w AND d_id = :d "+
			"RETURNING d_next_o_id, d_tax INTO :o, :tax")
	order := keyed(Statement{Type: Ins, Relation: "Orders", Write: All()}, ":w :d :o",
		"INSERT INTO Orders VALUES (:w, :d, :o, :c, :now, NULL, :lines, :local)")
	open := keyed(Statement{Type: Ins, Relation: "NewOrder", Write: All()}, ":w :d :o",
		"INSERT INTO NewOrder VALUES (:w, :d, :o)")
	item := keyed(Statement{Type: KeySel, Relation: "Item", Read: attributes("i_price i_name i_data")}, ":i",
		"SELECT i_price, i_name, i_data FROM Item WHERE i_id = :i")
	stock := keyed(Statement{Type: KeyUpd, Relation: "Stock",
		Read: attributes("s_quantity s_dist_01 s_dist_02 s_dist_03 s_dist_04 s_dist_05 s_dist_06 s_dist_07 " +
			"s_dist_08 s_dist_09 s_dist_10 s_ytd s_order_cnt s_remote_cnt s_data"),
		Write: attributes("s_quantity s_ytd s_order_cnt s_remote_cnt")}, ":sw :i",
		"UPDATE Stock SET s_quantity = s_quantity - :n + CASE WHEN s_quantity - :n < 10 THEN 91 ELSE 0 END, "+
			"s_ytd = s_ytd + :n, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + :remote "+
			"WHERE s_w_id = :sw AND s_i_id = :i RETURNING s_quantity, s_dist_01, s_data INTO :left, :dist, :data")
	line := keyed(Statement{Type: Ins, Relation: "OrderLine", Write: All()}, ":w :d :o :line",
		"INSERT INTO OrderLine VALUES (:w, :d, :o, :line, :i, :sw, NULL, :n, :amount, :dist)")
	p := NewProgram("NewOrder", Sequence{customer, warehouse, district, order, open,
		&Loop{Body: Sequence{item, stock, line}}},
		Constraint{Parent: district, ForeignKey: "CustomerDistrict", Child: customer},
		Constraint{Parent: warehouse, ForeignKey: "DistrictWarehouse", Child: district},
		Constraint{Parent: customer, ForeignKey: "OrdersCustomer", Child: order},
		Constraint{Parent: order, ForeignKey: "NewOrderOrders", Child: open},
		Constraint{Parent: item, ForeignKey: "StockItem", Child: stock},
		Constraint{Parent: order, ForeignKey: "OrderLineOrders", Child: line},
		Constraint{Parent: stock, ForeignKey: "OrderLineStock", Child: line})
	p.Short = "NO"
	return p
}

func tpccPayment() *Program {
	warehouse := keyed(Statement{Type: KeyUpd, Relation: "Warehouse",
		Read: attributes("w_name w_street_1 w_street_2 w_city w_state w_zip w_ytd"), Write: Of("w_ytd")}, ":w",
		"UPDATE Warehouse SET w_ytd = w_ytd + :amount WHERE w_id = :w "+
			"RETURNING w_name, w_street_1, w_street_2, w_city, w_state, w_zip")
	district := keyed(Statement{Type: KeyUpd, Relation: "District",
		Read: attributes("d_name d_street_1 d_street_2 d_city d_state d_zip d_ytd"), Write: Of("d_ytd")}, ":w :d",
		"UPDATE District SET d_ytd = d_ytd + :amount WHERE d_w_id = :w AND d_id = :d "+
			"RETURNING d_name, d_street_1, d_street_2, d_city, d_state, d_zip")
	byName := &Statement{Type: PredSel, Relation: "Customer", PRead: attributes("c_w_id c_d_id c_last"),
		Read: attributes("c_id c_first"),
		SQL:  "SELECT c_id FROM Customer WHERE c_w_id = :w AND c_d_id = :d AND c_last = :last ORDER BY c_first"}
	customer := keyed(Statement{Type: KeyUpd, Relation: "Customer",
		Read: attributes("c_first c_middle c_last c_street_1 c_street_2 c_city c_state c_zip c_phone c_since " +
			"c_credit c_credit_lim c_discount c_balance c_ytd_payment c_payment_cnt"),
		Write: attributes("c_balance c_ytd_payment c_payment_cnt")}, ":w :d :c",
		"UPDATE Customer SET c_balance = c_balance - :amount, c_ytd_payment = c_ytd_payment + :amount, "+
			"c_payment_cnt = c_payment_cnt + 1 WHERE c_w_id = :w AND c_d_id = :d AND c_id = :c "+
			"RETURNING c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_since, "+
			"c_credit, c_credit_lim, c_discount, c_balance")
	data := keyed(Statement{Type: KeySel, Relation: "Customer", Read: Of("c_data")}, ":w :d :c",
		"SELECT c_data INTO :data FROM Customer WHERE c_w_id = :w AND c_d_id = :d AND c_id = :c")
	newData := keyed(Statement{Type: KeyUpd, Relation: "Customer", Read: Of(), Write: Of("c_data")}, ":w :d :c",
		"UPDATE Customer SET c_data = :data WHERE c_w_id = :w AND c_d_id = :d AND c_id = :c")
	history := &Statement{Type: Ins, Relation: "History", Write: All(),
		SQL: "INSERT INTO History VALUES (:c, :d, :w, :d, :w, :now, :amount, :text)"}
	p := NewProgram("Payment", Sequence{warehouse, district, &Optional{Body: byName}, customer,
		&Optional{Body: Sequence{data, newData}}, history},
		Constraint{Parent: warehouse, ForeignKey: "DistrictWarehouse", Child: district},
		Constraint{Parent: district, ForeignKey: "CustomerDistrict", Child: byName},
		Constraint{Parent: district, ForeignKey: "CustomerDistrict", Child: customer},
		Constraint{Parent: district, ForeignKey: "CustomerDistrict", Child: data},
		Constraint{Parent: district, ForeignKey: "CustomerDistrict", Child: newData},
		Constraint{Parent: customer, ForeignKey: "HistoryCustomer", Child: history})
	p.Short = "Pay"
	return p
}

func tpccOrderStatus() *Program {
	byName := &Statement{Type: PredSel, Relation: "Customer", PRead: attributes("c_w_id c_d_id c_last"),
		Read: attributes("c_id c_first c_middle c_balance"),
		SQL: "SELECT c_id, c_first, c_middle, c_balance FROM Customer WHERE c_w_id = :w AND c_d_id = :d " +
			"AND c_last = :last ORDER BY c_first"}
	byID := keyed(Statement{Type: KeySel, Relation: "Customer", Read: attributes("c_first c_middle c_last c_balance")},
		":w :d :c",
		"SELECT c_first, c_middle, c_last, c_balance FROM Customer WHERE c_w_id = :w AND c_d_id = :d AND c_id = :c")
	orders := &Statement{Type: PredSel, Relation: "Orders", PRead: attributes("o_w_id o_d_id o_c_id"),
		Read: attributes("o_id o_entry_d o_carrier_id"),
		SQL: "SELECT o_id, o_entry_d, o_carrier_id FROM Orders WHERE o_w_id = :w AND o_d_id = :d " +
			"AND o_c_id = :c ORDER BY o_id DESC"}
	lines := &Statement{Type: PredSel, Relation: "OrderLine", PRead: attributes("ol_w_id ol_d_id ol_o_id"),
		Read: attributes("ol_i_id ol_supply_w_id ol_quantity ol_amount ol_delivery_d"),
		SQL: "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM OrderLine " +
			"WHERE ol_w_id = :w AND ol_d_id = :d AND ol_o_id = :o"}
	p := NewProgram("OrderStatus", Sequence{Choice{byName, byID}, orders, lines})
	p.Short = "OS"
	return p
}

func tpccDelivery() *Program {
	oldest := &Statement{Type: PredSel, Relation: "NewOrder", PRead: attributes("no_w_id no_d_id"), Read: Of("no_o_id"),
		SQL: "SELECT MIN(no_o_id) INTO :o FROM NewOrder WHERE no_w_id = :w AND no_d_id = :d"}
	done := keyed(Statement{Type: KeyDel, Relation: "NewOrder", Write: All()}, ":w :d :o",
		"DELETE FROM NewOrder WHERE no_w_id = :w AND no_d_id = :d AND no_o_id = :o")
	order := keyed(Statement{Type: KeyUpd, Relation: "Orders", Read: Of("o_c_id"), Write: Of("o_carrier_id")},
		":w :d :o",
		"UPDATE Orders SET o_carrier_id = :carrier WHERE o_w_id = :w AND o_d_id = :d AND o_id = :o RETURNING o_c_id INTO :c")
	lines := &Statement{Type: PredUpd, Relation: "OrderLine", PRead: attributes("ol_w_id ol_d_id ol_o_id"), Read: Of(),
		Write: Of("ol_delivery_d"),
		SQL:   "UPDATE OrderLine SET ol_delivery_d = :now WHERE ol_w_id = :w AND ol_d_id = :d AND ol_o_id = :o"}
	amount := &Statement{Type: PredSel, Relation: "OrderLine", PRead: attributes("ol_w_id ol_d_id ol_o_id"),
		Read: Of("ol_amount"),
		SQL:  "SELECT SUM(ol_amount) INTO :amount FROM OrderLine WHERE ol_w_id = :w AND ol_d_id = :d AND ol_o_id = :o"}
	customer := keyed(Statement{Type: KeyUpd, Relation: "Customer", Read: attributes("c_balance c_delivery_cnt"),
		Write: attributes("c_balance c_delivery_cnt")},
		":w :d :c", "UPDATE Customer SET c_balance = c_balance + :amount, c_delivery_cnt = c_delivery_cnt + 1 "+
			"WHERE c_w_id = :w AND c_d_id = :d AND c_id = :c")
	p := NewProgram("Delivery", &Loop{Body: Sequence{oldest, done, order, lines, amount, customer}},
		Constraint{Parent: order, ForeignKey: "NewOrderOrders", Child: done},
		Constraint{Parent: customer, ForeignKey: "OrdersCustomer", Child: order},
		Constraint{Parent: order, ForeignKey: "OrderLineOrders", Child: lines},
		Constraint{Parent: order, ForeignKey: "OrderLineOrders", Child: amount})
	p.Short = "Del"
	return p
}

func tpccStockLevel() *Program {
	district := keyed(Statement{Type: KeySel, Relation: "District", Read: Of("d_next_o_id")}, ":w :d",
		"SELECT d_next_o_id INTO :o FROM District WHERE d_w_id = :w AND d_id = :d")
	lines := &Statement{Type: PredSel, Relation: "OrderLine", PRead: attributes("ol_w_id ol_d_id ol_o_id"),
		Read: Of("ol_i_id"),
		SQL: "SELECT DISTINCT ol_i_id FROM OrderLine WHERE ol_w_id = :w AND ol_d_id = :d " +
			"AND ol_o_id BETWEEN :o - 20 AND :o - 1"}
	stock := &Statement{Type: PredSel, Relation: "Stock", PRead: attributes("s_w_id s_i_id s_quantity"),
		Read: Of("s_i_id"),
		SQL:  "SELECT s_i_id FROM Stock WHERE s_w_id = :w AND s_i_id IN (:items) AND s_quantity < :threshold"}
	p := NewProgram("StockLevel", Sequence{district, lines, stock})
	p.Short = "SL"
	return p
}
